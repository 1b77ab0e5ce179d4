// SPDX-License-Identifier: Apache-2.0
// A bare round trip of vsock, to measure others by: one byte there and back, between two programs
// that do nothing else.
//
//   echo           in the guest: sends back whatever comes; who started it goes on when it listens
//   echo CID       on the host: for each line that it reads, makes one round trip and prints how
//   many nanoseconds it took
#include <linux/vm_sockets.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr unsigned kPort = 7;

sockaddr_vm address_at(unsigned cid) {
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_cid = cid;
  address.svm_port = kPort;
  return address;
}

int fail(const char* what) {
  std::perror(what);
  return 1;
}

int serve() {
  const int listener = ::socket(AF_VSOCK, SOCK_STREAM, 0);
  const sockaddr_vm address = address_at(VMADDR_CID_ANY);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return fail("bind");
  if (::listen(listener, 1) != 0) return fail("listen");
  if (::daemon(0, 0) != 0) return fail("daemon");
  for (;;) {
    const int peer = ::accept(listener, nullptr, nullptr);
    char byte = 0;
    while (::read(peer, &byte, 1) == 1 && ::write(peer, &byte, 1) == 1) continue;
    ::close(peer);
  }
}

int measure(unsigned cid) {
  using Clock = std::chrono::steady_clock;
  const int guest = ::socket(AF_VSOCK, SOCK_STREAM, 0);
  const sockaddr_vm address = address_at(cid);
  if (::connect(guest, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return fail("connect");
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    char byte = 'x';
    const auto began = Clock::now();
    if (::write(guest, &byte, 1) != 1 || ::read(guest, &byte, 1) != 1) return fail("round trip");
    std::printf("%lld\n",
                static_cast<long long>((Clock::now() - began) / std::chrono::nanoseconds(1)));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  return count > 1 ? measure(static_cast<unsigned>(std::strtoul(words[1], nullptr, 10))) : serve();
}
