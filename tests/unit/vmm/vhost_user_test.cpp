// SPDX-License-Identifier: Apache-2.0
// Processes that are connected to a VMM: as many as are read, and one more.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "tests/catch.hpp"
#include "vmm/procfs/vhost_user.hpp"

using namespace ka;

namespace {

/// Processes that each listen on a socket of their own, and connections to them.
class Listeners {
 public:
  explicit Listeners(int count) {
    for (int i = 0; i < count; ++i)
      add("ka-peers-" + std::to_string(::getpid()) + '-' + std::to_string(i));
  }
  ~Listeners() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;

  std::vector<int> connections() const {
    std::vector<int> numbers;
    for (const base::Fd& connection : connections_) numbers.push_back(connection.get());
    return numbers;
  }

 private:
  void add(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const auto* at = reinterpret_cast<const sockaddr*>(&address);
    const base::Fd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(listening.get(), at, size) == 0);
    int ready[2];
    REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
    const base::Fd from(ready[0]), to(ready[1]);
    pids_.push_back(::fork());
    REQUIRE(pids_.back() >= 0);
    if (pids_.back() == 0) listen_for_ever(listening.get(), to.get());
    char byte = 0;
    REQUIRE(::read(from.get(), &byte, 1) == 1);
    connections_.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(connections_.back().get(), at, size) == 0);
  }

  [[noreturn]] static void listen_for_ever(int socket, int ready) {
    if (::listen(socket, 1) != 0 || ::write(ready, "", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }

  std::vector<pid_t> pids_;
  std::vector<base::Fd> connections_;
};

}  // namespace

TEST_CASE("more processes than are read may be connected to a VMM") {
  const auto [count, is_whole] = GENERATE(table<int, bool>({{64, true}, {65, false}}));
  const Listeners others(count);
  base::Trouble trouble;
  const auto peers = vmm::unix_peers("/proc", ::getpid(), others.connections(), trouble);
  CHECK(peers.size() == 64);
  CHECK(trouble.none() == is_whole);
}
