// SPDX-License-Identifier: Apache-2.0
// inotify on the loop: directories that are watched for files that come, go, or are written.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/result.hpp"

namespace ka::watch {

/// Must outlive the running of its io_context.
class Inotify {
 public:
  /// `changed` is called after changes; many that come together are one. While inotify cannot be
  /// had (out of instances, or of watches) it is not called: users of this class poll as well.
  Inotify(boost::asio::io_context& io, std::function<void()> changed);

  /// Begins a round, in which all that is to be watched is named again: inotify may have been had
  /// only now, and knows nothing of the rounds before.
  void begin();

  /// Also for a directory that is watched already. Fails as the system call does, kGone where there
  /// is no such directory.
  base::Result<void> watch(const std::filesystem::path& directory);
  /// Watches it, or while it is not there the nearest one above it. True: itself.
  bool watch_nearest(const std::filesystem::path& directory);

  /// Why changes are not noticed: what failed first in this round. A directory that is not there is
  /// no failure.
  const std::optional<base::Error>& trouble() const { return trouble_; }

 private:
  base::Result<void> open();
  void close(const boost::system::error_code& error);
  void wait();

  boost::asio::posix::stream_descriptor descriptor_;
  std::function<void()> changed_;
  std::optional<base::Error> trouble_;
  alignas(8) std::array<char, 4096> buffer_{};
};

}  // namespace ka::watch
