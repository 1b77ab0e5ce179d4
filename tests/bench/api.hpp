// The daemon's API, for benchmarks: one connection, one request at a time, and an end of the
// program where anything goes wrong.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace ka::bench {

class Api {
 public:
  explicit Api(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    for (int tries = 0; tries < 500; ++tries) {
      fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the sockets API
      if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return;
      ::close(fd_);
      ::usleep(10000);
    }
    std::fputs("the daemon does not answer\n", stderr);
    std::exit(1);
  }

  void put(const std::string& target, const std::string& body) const {
    const std::string request =
        "PUT " + target +
        " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n\r\n" + body;
    if (::write(fd_, request.data(), request.size()) < 0) std::exit(1);
    std::string answer(65536, '\0');
    const ssize_t got = ::read(fd_, answer.data(), answer.size());
    if (got > 12 && answer.compare(9, 1, "2") == 0) return;
    std::fprintf(stderr, "%s: %.*s\n", target.c_str(), static_cast<int>(got), answer.data());
    std::exit(1);
  }

 private:
  int fd_ = -1;
};

}  // namespace ka::bench
