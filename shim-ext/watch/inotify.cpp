// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/watch/inotify.hpp"

#include <sys/inotify.h>

#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace ka::watch {
namespace {

constexpr std::uint32_t kChanges =
    IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF;

}  // namespace

Inotify::Inotify(boost::asio::io_context& io, std::function<void()> changed)
    : descriptor_(io), changed_(std::move(changed)) {
  const int descriptor = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (descriptor < 0) return;
  descriptor_.assign(descriptor);
  wait();
}

base::Result<void> Inotify::watch(const std::filesystem::path& directory) {
  const int watched = ::inotify_add_watch(descriptor_.is_open() ? descriptor_.native_handle() : -1,
                                          directory.c_str(), kChanges | IN_ONLYDIR);
  if (watched < 0) return base::fail_errno(errno, "cannot watch " + directory.native());
  return {};
}

bool Inotify::watch_nearest(const std::filesystem::path& directory) {
  for (std::filesystem::path at = directory; !at.empty(); at = at.parent_path()) {
    const auto watched = watch(at);
    if (watched) return at == directory;
    if (!is_gone(watched) || at == at.root_path()) return false;
  }
  return false;
}

void Inotify::wait() {
  descriptor_.async_read_some(boost::asio::buffer(buffer_),
                              [this](const boost::system::error_code& error, std::size_t) {
                                if (error) return;
                                changed_();
                                wait();
                              });
}

}  // namespace ka::watch
