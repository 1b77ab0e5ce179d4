// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/host/connect.hpp"

// Before linux/vm_sockets.h, which takes it for granted.
#include <sys/socket.h>

#include <linux/vm_sockets.h>

#include <cerrno>

#include "base/unix_socket.hpp"

namespace ka::guest {
namespace {

base::Result<base::Fd> connect_vsock(const Address& address) {
  sockaddr_vm target{};
  target.svm_family = AF_VSOCK;
  target.svm_cid = address.cid;
  target.svm_port = address.port;
  base::Fd fd(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* generic = reinterpret_cast<const sockaddr*>(&target);
  if (fd && (::connect(fd.get(), generic, sizeof target) == 0 || errno == EINPROGRESS)) return fd;
  base::Error error = base::system_error(errno, "cannot connect to " + to_string(address));
  if (error.code != base::ErrorCode::kPermission) error.code = base::ErrorCode::kUnavailable;
  return unexpected(std::move(error));
}

}  // namespace

Opening opening_of(const Address& address) {
  if (address.kind == Address::Kind::kHybrid) return Opening::kConnect;
  return address.kind == Address::Kind::kSerial ? Opening::kMark : Opening::kNone;
}

base::Result<base::Fd> connect(const Address& address) {
  if (address.kind == Address::Kind::kVsock) return connect_vsock(address);
  return base::connect_unix(address.path);
}

}  // namespace ka::guest
