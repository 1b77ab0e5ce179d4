// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/watch/inotify.hpp"

#include <sys/inotify.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <cstdint>
#include <utility>

#include "base/inotify.hpp"

namespace ka::watch {
namespace {

constexpr std::uint32_t kChanges = IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM |
                                   IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF;

}  // namespace

Inotify::Inotify(boost::asio::io_context& io, std::function<void()> changed)
    : descriptor_(io), changed_(std::move(changed)) {}

void Inotify::begin() {
  trouble_.reset();
  if (descriptor_.is_open()) return;
  if (const auto opened = open(); !opened) trouble_ = opened.error();
}

base::Result<void> Inotify::open() {
  auto inotify = base::open_inotify();
  if (!inotify) return unexpected(inotify.error());
  boost::system::error_code failed;
  descriptor_.assign(inotify->get(), failed);
  if (failed) return base::fail_errno(failed.value(), "inotify on the event loop");
  inotify->release();
  wait();
  return {};
}

base::Result<void> Inotify::watch(const std::filesystem::path& directory) {
  if (!descriptor_.is_open()) {
    return base::fail(base::ErrorCode::kTransient, "there is no inotify");
  }
  const auto watched =
      base::watch_directory(descriptor_.native_handle(), directory.native(), kChanges);
  if (watched) return {};
  if (!is_gone(watched) && !trouble_) trouble_ = watched.error();
  return unexpected(watched.error());
}

bool Inotify::watch_nearest(const std::filesystem::path& directory) {
  for (std::filesystem::path at = directory; !at.empty(); at = at.parent_path()) {
    const auto watched = watch(at);
    if (watched) return at == directory;
    if (!is_gone(watched) || at == at.root_path()) return false;
  }
  return false;
}

/// The next round has another.
void Inotify::close(const boost::system::error_code& error) {
  boost::system::error_code ignored;
  descriptor_.close(ignored);
  trouble_ = base::system_error(error.value(), "inotify");
}

void Inotify::wait() {
  descriptor_.async_read_some(boost::asio::buffer(buffer_),
                              [this](const boost::system::error_code& error, std::size_t) {
                                if (error == boost::asio::error::operation_aborted) return;
                                if (error) return close(error);
                                changed_();
                                wait();
                              });
}

}  // namespace ka::watch
