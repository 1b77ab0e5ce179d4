// SPDX-License-Identifier: Apache-2.0
#include "base/unix_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/uninterrupted.hpp"

namespace ka::base {
namespace {

/// The sockets API knows only the head that all addresses share.
const sockaddr* head_of(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

Error refusal(int number, const std::string& what) {
  Error error = system_error(number, what);
  if (number == ECONNREFUSED) error.code = ErrorCode::kGone;
  if (number == EADDRINUSE) error.code = ErrorCode::kConflict;
  return error;
}

Result<Fd> connect(Fd fd, const std::filesystem::path& path) {
  const auto address = unix_address(path);
  if (!address) return unexpected(address.error());
  const std::string what = "cannot connect to " + path.native();
  if (!fd) return fail_errno(errno, what);
  const auto call = [&] { return ::connect(fd.get(), head_of(*address), sizeof(*address)); };
  if (uninterrupted(call) != 0) return unexpected(refusal(errno, what));
  return fd;
}

/// unix_stream_connect() waits for room in the backlog as long as a send may take
/// (net/unix/af_unix.c).
void limit_waiting(const Fd& fd, std::chrono::seconds timeout) {
  const timeval time{.tv_sec = timeout.count(), .tv_usec = 0};
  for (const int which : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    ::setsockopt(fd.get(), SOL_SOCKET, which, &time, sizeof(time));
  }
}

}  // namespace

Result<sockaddr_un> unix_address(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& text = path.native();
  if (text.empty() || text.size() >= sizeof(address.sun_path)) {
    return fail(ErrorCode::kInvalid, "the socket path \"" + text + "\" must have 1 to " +
                                         std::to_string(sizeof(address.sun_path) - 1) + " bytes");
  }
  text.copy(address.sun_path, text.size());
  return address;
}

Result<void> check_is_socket(const std::filesystem::path& path) {
  std::error_code unseen;
  const auto status = std::filesystem::status(path, unseen);
  if (status.type() == std::filesystem::file_type::none) {
    return fail_errno(unseen.value(), path.string());
  }
  if (!std::filesystem::exists(status) || std::filesystem::is_socket(status)) return {};
  return fail(ErrorCode::kInvalid, path.string() + ": is not a socket");
}

Result<Fd> connect_unix(const std::filesystem::path& path) {
  return connect(Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), path);
}

Result<Fd> connect_unix(const std::filesystem::path& path, std::chrono::seconds timeout) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd) limit_waiting(fd, timeout);
  return connect(std::move(fd), path);
}

Result<Fd> listen_unix(const std::filesystem::path& path) {
  const auto address = unix_address(path);
  if (!address) return unexpected(address.error());
  const std::string what = "cannot listen on " + path.native();
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // The mode that the socket's inode has now is the one its name in the file system gets
  // (net/unix/af_unix.c, unix_bind_bsd), so that there is no moment in which others may connect.
  if (!fd || ::fchmod(fd.get(), 0600) != 0) return fail_errno(errno, what);
  if (::bind(fd.get(), head_of(*address), sizeof(*address)) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return unexpected(refusal(errno, what));
  }
  return fd;
}

}  // namespace ka::base
