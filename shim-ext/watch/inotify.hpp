// SPDX-License-Identifier: Apache-2.0
// inotify on the loop: directories that are watched for files that come, go, or are written.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <filesystem>
#include <functional>

#include "base/result.hpp"

namespace ka::watch {

/// Must outlive the running of its io_context.
class Inotify {
 public:
  /// `changed` is called after changes; many that come together are one. Without inotify
  /// (out of instances) it is never called: users of this class poll as well.
  Inotify(boost::asio::io_context& io, std::function<void()> changed);

  /// Also for a directory that is watched already. Fails as the system call does, kGone where there
  /// is no such directory.
  base::Result<void> watch(const std::filesystem::path& directory);
  /// Watches it, or while it is not there the nearest one above it. True: itself.
  bool watch_nearest(const std::filesystem::path& directory);

 private:
  void wait();

  boost::asio::posix::stream_descriptor descriptor_;
  std::function<void()> changed_;
  alignas(8) std::array<char, 4096> buffer_{};
};

}  // namespace ka::watch
