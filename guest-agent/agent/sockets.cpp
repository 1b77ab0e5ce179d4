// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/sockets.hpp"

// Before linux/vm_sockets.h, which takes it for granted.
#include <sys/socket.h>

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/unix_socket.hpp"
#include "guest-agent/agent/files.hpp"

namespace ka::agent {
namespace {

using base::ErrorCode;
using base::Fd;
using base::Result;

constexpr int kWaiting = 16;  ///< backlog: connections not yet accepted
constexpr int kFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;
constexpr int kUeventBuffer = 1 << 20;

base::Error not_now(int number, const char* what) {
  return {ErrorCode::kTransient, base::system_error(number, what).message};
}

Result<bool> comes_from_host(int fd, const sockaddr_storage& peer) {
  if (peer.ss_family == AF_VSOCK) {
    sockaddr_vm address{};
    std::memcpy(&address, &peer, sizeof address);
    return address.svm_cid == VMADDR_CID_HOST;
  }
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
    return unexpected(not_now(errno, "cannot identify the peer"));
  }
  return who.uid == 0 || who.uid == ::geteuid();
}

/// Without the module, or a filter of address families: socket(2).
auto unopened(int number, const std::string& what) {
  base::Error error = base::system_error(number, what);
  if (number == EAFNOSUPPORT || number == EPROTONOSUPPORT) error.code = ErrorCode::kUnavailable;
  return unexpected(std::move(error));
}

void read_uevent(std::string_view message, Uevents& news) {
  news.cpus |= message.find("/devices/system/cpu/cpu") != std::string_view::npos;
  news.ports |= message.find("/virtio-ports/") != std::string_view::npos;
}

}  // namespace

Result<Fd> listen_vsock(std::uint32_t port) {
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_cid = VMADDR_CID_ANY;
  address.svm_port = port;
  const auto* head = reinterpret_cast<const sockaddr*>(&address);
  Fd fd(::socket(AF_VSOCK, SOCK_STREAM | kFlags, 0));
  if (!fd || ::bind(fd.get(), head, sizeof address) != 0 || ::listen(fd.get(), kWaiting) != 0) {
    return unopened(errno, "cannot listen on vsock port " + std::to_string(port));
  }
  return fd;
}

/// A full backlog is no proof that nobody listens.
Result<Fd> listen_unix(const std::filesystem::path& path) {
  if (const auto probe = base::connect_unix(path); !is_gone(probe)) {
    return base::fail(ErrorCode::kConflict, "another program listens on " + path.native());
  }
  std::error_code none;
  std::filesystem::create_directories(path.parent_path(), none);
  ::unlink(path.c_str());
  return base::listen_unix(path);
}

Result<Fd> accept_host(int listener) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  Fd fd(::accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, kFlags));
  if (fd) {
    const auto admitted = comes_from_host(fd.get(), peer);
    if (!admitted) return unexpected(admitted.error());
    return *admitted ? std::move(fd) : Fd();
  }
  if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return Fd();
  return unexpected(not_now(errno, "cannot accept a connection"));
}

Fd open_serial(const Roots& roots, const std::string& name) {
  const auto ports = roots.sys / "class/virtio-ports";
  for (const std::string& port : list_names(ports)) {
    if (read_text(ports / port / "name") != name) continue;
    return Fd(::open(("/dev/" + port).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  }
  return {};
}

Result<Fd> open_uevents() {
  constexpr const char* kWhat = "cannot hear of CPUs that are plugged";
  Fd fd(::socket(AF_NETLINK, SOCK_DGRAM | kFlags, NETLINK_KOBJECT_UEVENT));
  if (!fd) return unopened(errno, kWhat);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kUeventBuffer, sizeof kUeventBuffer);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = 1;  // the kernel's own, not what udev makes of them
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return unopened(errno, kWhat);
  }
  return fd;
}

Uevents read_uevents(int fd) {
  Uevents news;
  std::array<char, 4096> buffer{};
  for (;;) {
    sockaddr_nl from{};
    socklen_t size = sizeof from;
    const ssize_t got =
        ::recvfrom(fd, buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (got < 0 && errno == ENOBUFS) return {.cpus = true, .ports = true};
    if (got <= 0) return news;
    if (from.nl_pid == 0) read_uevent({buffer.data(), static_cast<std::size_t>(got)}, news);
  }
}

}  // namespace ka::agent
