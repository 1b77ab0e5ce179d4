#include "guest-agent/agent/sockets.hpp"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "guest-agent/agent/files.hpp"

namespace ka::agent {
namespace {

constexpr int kWaiting = 16;  ///< connections that nobody accepted yet
constexpr int kFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;
constexpr int kUeventBuffer = 1 << 20;

template <typename Address>
Fd listen_at(int family, const Address& address) {
  Fd fd(::socket(family, SOCK_STREAM | kFlags, 0));
  if (!fd) return {};
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(fd.get(), generic, sizeof address) != 0) return {};
  if (::listen(fd.get(), kWaiting) != 0) return {};
  return fd;
}

bool unix_address(const std::filesystem::path& path, sockaddr_un& address) {
  const std::string& text = path.native();
  if (text.empty() || text.size() >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, text.data(), text.size());
  return true;
}

bool somebody_listens(const sockaddr_un& address) {
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | kFlags, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

bool comes_from_host(int fd, const sockaddr_storage& peer) {
  if (peer.ss_family == AF_VSOCK) {
    sockaddr_vm address{};
    std::memcpy(&address, &peer, sizeof address);
    return address.svm_cid == VMADDR_CID_HOST;
  }
  ucred who{};
  socklen_t size = sizeof who;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
         (who.uid == 0 || who.uid == ::geteuid());
}

void judge(std::string_view message, Uevents& news) {
  news.cpus |= message.find("/devices/system/cpu/cpu") != std::string_view::npos;
  news.ports |= message.find("/virtio-ports/") != std::string_view::npos;
}

}  // namespace

Fd listen_vsock(std::uint32_t port) {
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_cid = VMADDR_CID_ANY;
  address.svm_port = port;
  return listen_at(AF_VSOCK, address);
}

Fd listen_unix(const std::filesystem::path& path) {
  sockaddr_un address{};
  if (!unix_address(path, address) || somebody_listens(address)) return {};
  std::error_code none;
  std::filesystem::create_directories(path.parent_path(), none);
  ::unlink(path.c_str());
  const mode_t before = ::umask(0177);
  Fd fd = listen_at(AF_UNIX, address);
  ::umask(before);
  return fd;
}

Fd accept_host(int listener) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  Fd fd(::accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, kFlags));
  if (!fd || !comes_from_host(fd.get(), peer)) return {};
  return fd;
}

Fd open_serial(const Roots& roots, const std::string& name) {
  const auto ports = roots.sys / "class/virtio-ports";
  for (const std::string& port : list_names(ports)) {
    if (read_text(ports / port / "name") != name) continue;
    return Fd(::open(("/dev/" + port).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  }
  return {};
}

Fd open_uevents() {
  Fd fd(::socket(AF_NETLINK, SOCK_DGRAM | kFlags, NETLINK_KOBJECT_UEVENT));
  if (!fd) return {};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kUeventBuffer, sizeof kUeventBuffer);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = 1;  // the kernel's own, not what udev makes of them
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
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
    if (from.nl_pid == 0) judge({buffer.data(), static_cast<std::size_t>(got)}, news);
  }
}

}  // namespace ka::agent
