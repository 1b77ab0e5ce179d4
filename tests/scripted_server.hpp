// SPDX-License-Identifier: Apache-2.0
// A server on a unix socket that serves one connection after the other, each with the next of the
// texts that a test gives it.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "base/unix_socket.hpp"

namespace ka::tests {

inline void wait_for_end(int peer) {
  char ignored[512];
  while (::read(peer, ignored, sizeof(ignored)) > 0) {
  }
}

class ScriptedServer {
 public:
  /// Speaks with one client, on the server's thread; the connection ends with it.
  using Serve = std::function<void(int peer, const std::string& text)>;

  ScriptedServer(const std::filesystem::path& socket, std::vector<std::string> texts, Serve serve)
      : listener_(listen_at(socket)),
        thread_([this, texts = std::move(texts), serve = std::move(serve)] { run(texts, serve); }) {
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  /// Clients that are still served are waited for.
  ~ScriptedServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  static base::Fd listen_at(const std::filesystem::path& path) {
    base::Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = base::unix_address(path).value();
    ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    ::listen(listener.get(), 1);
    return listener;
  }

  void run(const std::vector<std::string>& texts, const Serve& serve) {
    for (const std::string& text : texts) {
      const base::Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer) return;
      serve(peer.get(), text);
    }
  }

  base::Fd listener_;
  std::thread thread_;
};

}  // namespace ka::tests
