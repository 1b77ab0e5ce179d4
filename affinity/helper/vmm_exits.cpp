// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/vmm_exits.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <utility>

#include "base/fd.hpp"

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
/// open. One that has ended is found by the next check.
void VmmExits::watch_one(const ThreadKey& vmm) {
  base::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, vmm.pid, 0)));
  if (!process || !threads_.check_identity(vmm)) return;
  Descriptor& descriptor = watched_.emplace(vmm, Descriptor(io_, process.release())).first->second;
  descriptor.async_wait(Descriptor::wait_read, [this, vmm](const boost::system::error_code& error) {
    if (error) return;
    watched_.erase(vmm);
    ended_(vmm);
  });
}

}  // namespace ka::helper
