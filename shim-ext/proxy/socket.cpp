#include "shim-ext/proxy/socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

namespace ka::proxy {
namespace {

using base::ErrorCode;

constexpr int kBacklog = 128;

std::optional<sockaddr_un> name(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return std::nullopt;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

base::Fd new_socket() {
  return base::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

base::Error refusal(int number, const std::string& path) {
  base::Error error = base::system_error(number, path);
  if (number == ECONNREFUSED) error.code = ErrorCode::kGone;
  if (number == EADDRINUSE) error.code = ErrorCode::kConflict;
  return error;
}

}  // namespace

base::Result<base::Fd> connect_to(const std::string& path) {
  const auto address = name(path);
  if (!address) return base::fail(ErrorCode::kInvalid, path + ": too long for a socket");
  base::Fd fd = new_socket();
  if (!fd) return base::fail_errno(errno, "socket");
  const auto* where = reinterpret_cast<const sockaddr*>(&*address);
  if (::connect(fd.get(), where, sizeof(*address)) != 0) return unexpected(refusal(errno, path));
  return fd;
}

base::Result<base::Fd> listen_at(const std::string& path) {
  const auto address = name(path);
  if (!address) return base::fail(ErrorCode::kInvalid, path + ": too long for a socket");
  base::Fd fd = new_socket();
  if (!fd) return base::fail_errno(errno, "socket");
  const mode_t before = ::umask(0177);
  const int bound =
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address));
  const int number = errno;
  ::umask(before);
  if (bound != 0) return unexpected(refusal(number, path));
  if (::listen(fd.get(), kBacklog) != 0) return base::fail_errno(errno, path);
  return fd;
}

FileId file_id(const std::string& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino};
}

void remove_socket(const std::string& path, FileId id) {
  if (id != FileId{} && file_id(path) == id) ::unlink(path.c_str());
}

}  // namespace ka::proxy
