// SPDX-License-Identifier: Apache-2.0
// A TLS connection to a server whose name and certificate are checked. Blocking, with time limits.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace ka::tls {

/// Whom to connect to, and who vouches for it.
struct Server {
  std::string host;  ///< a name or an address, which its certificate must have
  std::string port;
  std::filesystem::path authorities;  ///< certificates of those who may sign it (PEM)
};

class Session {
 public:
  /// TLS 1.2 or later. `authorities` is read anew each time: it changes. kUnavailable: nobody
  /// answers in time; kPermission: the certificate is not one of this host that an authority has
  /// signed; kInvalid: there are no authorities.
  static base::Result<Session> open(const Server& server, std::chrono::seconds limit);

  /// How long a read or a write waits for the peer.
  void set_limit(std::chrono::seconds limit);
  base::Result<void> send(std::string_view bytes);
  /// What has come, at least a byte; absent: the peer closed the session. An end without TLS's own
  /// word for it is an error, as anyone between the two could have made it.
  base::Result<std::optional<std::string_view>> receive(std::span<char> buffer);

 private:
  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  explicit Session(base::Fd socket) : socket_(std::move(socket)) {}
  base::Result<void> prepare(const Server& server);
  base::Result<void> handshake(const Server& server);

  base::Fd socket_;
  std::unique_ptr<SSL_CTX, FreeContext> context_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
};

}  // namespace ka::tls
