// SPDX-License-Identifier: Apache-2.0
#include "base/http/listen.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/files.hpp"
#include "base/unix_socket.hpp"

namespace ka::http {
namespace {

using base::ErrorCode;
using base::fail;
using base::fail_errno;
using base::Fd;
using base::Result;
namespace fs = std::filesystem;

constexpr int kSocketFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;

/// Those who may write a socket of this mode may enter its directory.
mode_t directory_mode(mode_t socket) {
  mode_t mode = S_IRWXU;
  if ((socket & S_IWGRP) != 0) mode |= S_IRGRP | S_IXGRP;
  if ((socket & S_IWOTH) != 0) mode |= S_IROTH | S_IXOTH;
  return mode;
}

/// One that is there stays as it is.
Result<void> make_directory(const fs::path& directory, mode_t socket) {
  if (directory.empty()) return {};
  std::error_code error;
  const bool made = fs::create_directories(directory, error);
  if (error) return fail_errno(error.value(), "cannot create " + directory.native());
  if (made && ::chmod(directory.c_str(), directory_mode(socket)) != 0) {
    return fail_errno(errno, "cannot set the mode of " + directory.native());
  }
  return {};
}

/// Whether a server accepts connections there. A full backlog and a lack of descriptors prove
/// neither.
Result<bool> is_served(const fs::path& path) {
  const auto probe = base::connect_unix(path);
  if (probe) return true;
  if (is_gone(probe)) return false;
  return fail(probe.error().code,
              "cannot find out whether " + path.native() + " is in use: " + probe.error().message);
}

std::string lock_path(const fs::path& path) { return path.native() + ".lock"; }

/// Whether there is this very file, and no other one.
bool names(const fs::path& path, const struct stat& file) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && found.st_dev == file.st_dev &&
         found.st_ino == file.st_ino;
}

/// Two daemons that start at once must not both take a dead socket for theirs to replace.
Result<Fd> lock_socket(const fs::path& path) {
  auto lock = base::lock_file(lock_path(path));
  if (!lock && lock.error().code == ErrorCode::kConflict) {
    return fail(ErrorCode::kConflict, "another daemon serves " + path.native());
  }
  return lock;
}

Result<void> clear_the_way(const fs::path& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno(errno, "cannot stat " + path.native());
  }
  if (!S_ISSOCK(found.st_mode)) {
    return fail(ErrorCode::kInvalid, path.native() + " exists and is not a socket");
  }
  const auto served = is_served(path);
  if (!served) return unexpected(served.error());
  if (*served) {
    return fail(ErrorCode::kConflict, "another program listens on " + path.native());
  }
  if (::unlink(path.c_str()) != 0) return fail_errno(errno, "cannot remove " + path.native());
  return {};
}

Result<Fd> bind_and_listen(const sockaddr* address, socklen_t size, const std::string& name) {
  Fd fd(::socket(address->sa_family, kSocketFlags, 0));
  if (!fd) return fail_errno(errno, "cannot create a socket for " + name);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd.get(), address, size) != 0 || ::listen(fd.get(), base::kBacklog) != 0) {
    return fail_errno(errno, "cannot listen on " + name);
  }
  return fd;
}

}  // namespace

Result<UnixListener> UnixListener::open(const fs::path& path, mode_t mode) {
  if (const auto good = base::unix_address(path); !good) return unexpected(good.error());
  UnixListener listener(path, mode);
  if (const auto bound = listener.restore(); !bound) return unexpected(bound.error());
  return listener;
}

UnixListener::~UnixListener() {
  if (is_bound()) ::unlink(path_.c_str());
}

Result<bool> UnixListener::restore() {
  if (is_bound()) return false;
  if (auto made = make_directory(path_.parent_path(), mode_); !made) {
    return unexpected(made.error());
  }
  if (auto locked = lock(); !locked) return unexpected(locked.error());
  if (auto bound = bind(); !bound) return unexpected(bound.error());
  return true;
}

/// The lock may be gone, too, and another daemon may have it.
Result<void> UnixListener::lock() {
  struct stat held{};
  if (lock_ && ::fstat(lock_.get(), &held) == 0 && names(lock_path(path_), held)) return {};
  auto lock = lock_socket(path_);
  if (!lock) return unexpected(lock.error());
  lock_ = std::move(*lock);
  return {};
}

Result<void> UnixListener::bind() {
  if (auto clear = clear_the_way(path_); !clear) return clear;
  auto socket = base::listen_unix(path_);
  if (!socket) return unexpected(socket.error());
  if ((mode_ != kOwnerOnly && ::chmod(path_.c_str(), mode_) != 0) ||
      ::stat(path_.c_str(), &file_) != 0) {
    return fail_errno(errno, "cannot set the mode of " + path_.native());
  }
  socket_ = std::move(*socket);
  return {};
}

bool UnixListener::is_bound() const { return socket_ && names(path_, file_); }

Result<Fd> listen_tcp(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos) {
    return fail(ErrorCode::kInvalid, "\"" + address + "\" is not ADDRESS:PORT");
  }
  const std::string port = address.substr(colon + 1);
  // getaddrinfo takes a port modulo 65536.
  if (const auto number = base::parse_number(port); !number || *number < 0 || *number > 65535) {
    return fail(ErrorCode::kInvalid, "\"" + port + "\" is not a port number");
  }
  std::string host = address.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed =
      ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  if (failed != 0) {
    return fail(ErrorCode::kInvalid,
                "\"" + address + "\" is not an address to listen on: " + ::gai_strerror(failed));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  return bind_and_listen(found->ai_addr, found->ai_addrlen, address);
}

}  // namespace ka::http
