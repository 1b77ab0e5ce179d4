// SPDX-License-Identifier: Apache-2.0
#include "base/log/stream.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <string>

#include "base/descriptors.hpp"

namespace ka::log {
namespace {

/// A pipe or terminal opened once more, since O_NONBLOCK belongs to an opened file and the others
/// who have the first one would not expect it. None where we may not: then poll(2) alone must do,
/// which is wrong only for a terminal with little room and a pipe that others fill meanwhile.
base::Fd open_again(int fd) {
  return base::open_file("/proc/self/fd/" + std::to_string(fd), O_WRONLY | O_NONBLOCK | O_NOCTTY);
}

bool has_room(int fd) {
  pollfd wanted{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&wanted, 1, 0) == 1 && (wanted.revents & POLLOUT) != 0;
}

}  // namespace

Stream::Stream(int fd) : fd_(fd), kind_(kind_of(fd)) {
  if (kind_ == Kind::kPipeOrTerminal) own_ = open_again(fd);
  if (own_) fd_ = own_.get();
}

/// Other devices are none to poll: /dev/kmsg takes lines, but never says so.
Stream::Kind Stream::kind_of(int fd) {
  struct stat is{};
  if (::fstat(fd, &is) != 0) return Kind::kOther;
  if (S_ISSOCK(is.st_mode)) return Kind::kSocket;
  return S_ISFIFO(is.st_mode) || ::isatty(fd) != 0 ? Kind::kPipeOrTerminal : Kind::kOther;
}

long Stream::write_now(std::string_view text) const {
  if (kind_ == Kind::kSocket) {
    return ::send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (kind_ == Kind::kOther) return ::write(fd_, text.data(), text.size());
  if (!has_room(fd_)) {
    errno = EAGAIN;
    return -1;
  }
  // A pipe with room has it for so much (pipe(7)).
  return ::write(fd_, text.data(), std::min(text.size(), std::size_t{PIPE_BUF}));
}

bool Stream::put(std::string_view line) {
  std::string text = is_cut_ ? "\n" : "";
  text += line;
  std::size_t at = 0;
  while (at < text.size()) {
    const long written = write_now(std::string_view(text).substr(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    at += static_cast<std::size_t>(written);
  }
  if (at > 0) is_cut_ = at < text.size();
  return at == text.size();
}

}  // namespace ka::log
