// SPDX-License-Identifier: Apache-2.0
// The daemon's API, for benchmarks: one connection, one request at a time, and an end of the
// program where anything goes wrong.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/fd.hpp"
#include "base/unix_socket.hpp"

namespace ka::bench {

class Api {
 public:
  explicit Api(const std::string& path) {
    for (int tries = 0; tries < 500; ++tries) {
      if (auto connected = base::connect_unix(path, std::chrono::seconds{60})) {
        fd_ = std::move(*connected);
        return;
      }
      ::usleep(10000);
    }
    std::fputs("the daemon does not answer\n", stderr);
    std::exit(1);
  }

  void put(const std::string& target, const std::string& body) const {
    request("PUT", target, body);
  }

  /// What fits into 64 KiB of the response, head and body.
  std::string get(const std::string& target) const { return request("GET", target, {}); }

 private:
  std::string request(const std::string& method, const std::string& target,
                      const std::string& body) const {
    const std::string request =
        method + ' ' + target +
        " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n\r\n" + body;
    if (::write(fd_.get(), request.data(), request.size()) < 0) std::exit(1);
    std::string answer(65536, '\0');
    const ssize_t got = ::read(fd_.get(), answer.data(), answer.size());
    answer.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (answer.size() > 12 && answer.compare(9, 1, "2") == 0) return answer;
    std::fprintf(stderr, "%s: %s\n", target.c_str(), answer.c_str());
    std::exit(1);
  }

  base::Fd fd_;
};

}  // namespace ka::bench
