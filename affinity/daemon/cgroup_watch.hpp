// Tells when somebody writes the cpuset of a cgroup. The kernel reports writes to cgroup files by
// inotify; what an ancestor's change makes of a cgroup it does not report: that is for the drift
// check.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>
#include <string>

namespace ka::daemon {

/// Must outlive the running of its io_context.
class CgroupWatch {
 public:
  using Written = std::function<void(const std::string& directory)>;

  /// Without inotify (no descriptors left) nothing is ever reported.
  CgroupWatch(boost::asio::io_context& io, Written written);

  /// Counts: a directory is watched until it was unwatched as often. One that does not exist or
  /// has no cpuset is no error.
  void watch(const std::string& directory);
  void unwatch(const std::string& directory);

 private:
  struct Watched {
    int descriptor = -1;
    int times = 0;
  };

  void read();
  void take(std::size_t size);

  boost::asio::posix::stream_descriptor inotify_;
  Written written_;
  std::map<std::string, Watched> watched_;
  std::map<int, std::string> directories_;  ///< by watch descriptor
  alignas(8) std::array<char, 4096> buffer_;
};

}  // namespace ka::daemon
