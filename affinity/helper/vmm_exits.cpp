// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/vmm_exits.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <cerrno>
#include <utility>

#include "base/pidfd.hpp"

namespace ka::helper {

using policy::ThreadKey;

VmmExits::VmmExits(VmmThreads threads, Ended ended)
    : threads_(std::move(threads)),
      ended_(std::move(ended)),
      io_(1),
      work_(io_.get_executor()),
      thread_([this] { io_.run(); }) {}

VmmExits::~VmmExits() {
  io_.stop();
  thread_.join();
}

void VmmExits::watch(std::vector<ThreadKey> vmms) {
  boost::asio::post(io_, [this, vmms = std::move(vmms)] { watch_only(vmms); });
}

void VmmExits::watch_only(const std::vector<ThreadKey>& vmms) {
  std::erase_if(watched_,
                [&](const auto& entry) { return std::ranges::count(vmms, entry.first) == 0; });
  for (const ThreadKey& vmm : vmms) {
    if (!watched_.contains(vmm)) watch_one(vmm);
  }
}

/// A pidfd stays with its process, which is the VMM if it still has the number once the pidfd is
/// open. "No such file" alone does not say that it has ended.
void VmmExits::watch_one(const ThreadKey& vmm) {
  base::Fd process = base::open_pidfd(vmm.pid);
  if (!process) {
    if (errno == ESRCH) ended_(vmm);
    return;
  }
  const auto same = threads_.check_identity(vmm);
  const bool is_other = is_gone(same) && same.error().number == 0;
  if (is_other || base::has_ended(process.get())) return ended_(vmm);
  if (!same) return;
  Descriptor& descriptor = watched_.emplace(vmm, Descriptor(io_, process.release())).first->second;
  descriptor.async_wait(Descriptor::wait_read, [this, vmm](const boost::system::error_code& error) {
    if (!error) handle_exit(vmm);
  });
}

/// The pidfd decides: Asio also ends a wait that it could not begin, without an error.
void VmmExits::handle_exit(const ThreadKey& vmm) {
  const auto found = watched_.find(vmm);
  if (found == watched_.end()) return;
  const bool ended = base::has_ended(found->second.native_handle());
  watched_.erase(found);
  if (ended) ended_(vmm);
}

}  // namespace ka::helper
