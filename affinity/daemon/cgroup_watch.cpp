#include "affinity/daemon/cgroup_watch.hpp"

#include <sys/inotify.h>

#include <boost/asio/buffer.hpp>
#include <cstring>
#include <set>
#include <utility>

namespace ka::daemon {

CgroupWatch::CgroupWatch(boost::asio::io_context& io, Written written)
    : inotify_(io), written_(std::move(written)) {
  const int descriptor = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor < 0) return;
  inotify_.assign(descriptor);
  read();
}

void CgroupWatch::watch(const std::string& directory) {
  Watched& watched = watched_[directory];
  if (watched.times++ > 0 || !inotify_.is_open()) return;
  const std::string file = directory + "/cpuset.cpus";
  watched.descriptor = ::inotify_add_watch(inotify_.native_handle(), file.c_str(), IN_MODIFY);
  if (watched.descriptor >= 0) directories_[watched.descriptor] = directory;
}

void CgroupWatch::unwatch(const std::string& directory) {
  const auto found = watched_.find(directory);
  if (found == watched_.end() || --found->second.times > 0) return;
  if (const int descriptor = found->second.descriptor; directories_.erase(descriptor) > 0) {
    ::inotify_rm_watch(inotify_.native_handle(), descriptor);
  }
  watched_.erase(found);
}

void CgroupWatch::read() {
  inotify_.async_read_some(boost::asio::buffer(buffer_),
                           [this](const boost::system::error_code& error, std::size_t size) {
                             if (error) return;
                             take(size);
                             read();
                           });
}

void CgroupWatch::take(std::size_t size) {
  std::set<std::string> written;
  for (std::size_t at = 0; at + sizeof(inotify_event) <= size;) {
    inotify_event event;
    std::memcpy(&event, buffer_.data() + at, sizeof(event));
    at += sizeof(event) + event.len;
    const auto found = directories_.find(event.wd);
    if (found == directories_.end()) continue;
    if ((event.mask & IN_MODIFY) != 0) written.insert(found->second);
    if ((event.mask & IN_IGNORED) != 0) directories_.erase(found);  // the cgroup is gone
  }
  for (const std::string& directory : written) written_(directory);
}

}  // namespace ka::daemon
