// SPDX-License-Identifier: Apache-2.0
#include "base/tls/session.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ka::tls {
namespace {

using base::ErrorCode;
using base::Result;

std::string name_of(const Server& server) { return server.host + ':' + server.port; }

/// The oldest error of OpenSSL's queue, which is empty then.
std::string ssl_error() {
  std::array<char, 256> text{};
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "the connection broke";
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

void limit_socket(int socket, std::chrono::seconds limit) {
  const timeval time{.tv_sec = limit.count(), .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  // For connect(2), too.
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Result<Addresses> resolve(const Server& server) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(server.host.c_str(), server.port.c_str(), &hints, &found);
  if (failed == 0) return Addresses(found, freeaddrinfo);
  return base::fail(ErrorCode::kUnavailable, name_of(server) + ": " + gai_strerror(failed));
}

Result<base::Fd> connect_to(const Server& server, std::chrono::seconds limit) {
  const auto addresses = resolve(server);
  if (!addresses) return unexpected(addresses.error());
  int failed = 0;
  for (const addrinfo* one = addresses->get(); one != nullptr; one = one->ai_next) {
    base::Fd socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    limit_socket(socket.get(), limit);
    if (::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) return socket;
    failed = errno == EINPROGRESS ? ETIMEDOUT : errno;
  }
  return base::fail(ErrorCode::kUnavailable,
                    "cannot connect to " + name_of(server) + ": " + std::strerror(failed));
}

}  // namespace

Result<Session> Session::open(const Server& server, std::chrono::seconds limit) {
  auto socket = connect_to(server, limit);
  if (!socket) return unexpected(socket.error());
  Session session(std::move(*socket));
  if (auto prepared = session.prepare(server); !prepared) return unexpected(prepared.error());
  if (auto shaken = session.handshake(server); !shaken) return unexpected(shaken.error());
  return session;
}

Result<void> Session::prepare(const Server& server) {
  context_.reset(SSL_CTX_new(TLS_client_method()));
  if (!context_) return base::fail(ErrorCode::kInternal, "TLS: " + ssl_error());
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  if (SSL_CTX_load_verify_locations(context_.get(), server.authorities.c_str(), nullptr) == 1) {
    return {};
  }
  return base::fail(ErrorCode::kInvalid, server.authorities.string() + ": " + ssl_error());
}

Result<void> Session::handshake(const Server& server) {
  ssl_.reset(SSL_new(context_.get()));
  if (!ssl_) return base::fail(ErrorCode::kInternal, "TLS: " + ssl_error());
  SSL_set_fd(ssl_.get(), socket_.get());
  if (is_address(server.host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), server.host.c_str());
  } else {
    SSL_set1_host(ssl_.get(), server.host.c_str());
    // SSL_set_tlsext_host_name() without its cast.
    SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(server.host.c_str()));
  }
  if (SSL_connect(ssl_.get()) == 1) return {};
  const long verdict = SSL_get_verify_result(ssl_.get());
  if (verdict == X509_V_OK) {
    return base::fail(ErrorCode::kUnavailable, "TLS with " + name_of(server) + ": " + ssl_error());
  }
  ERR_clear_error();
  return base::fail(ErrorCode::kPermission, "certificate of " + name_of(server) + ": " +
                                                X509_verify_cert_error_string(verdict));
}

void Session::set_limit(std::chrono::seconds limit) { limit_socket(socket_.get(), limit); }

Result<void> Session::send(std::string_view bytes) {
  std::size_t sent = 0;
  if (bytes.empty()) return {};
  // Without partial writes: all or nothing.
  if (SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent) == 1) return {};
  return base::fail(ErrorCode::kUnavailable, "cannot send: " + ssl_error());
}

Result<std::optional<std::string_view>> Session::receive(std::span<char> buffer) {
  std::size_t size = 0;
  errno = 0;
  const int done = SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &size);
  if (done == 1) return std::string_view(buffer.data(), size);
  const int why = SSL_get_error(ssl_.get(), done);
  if (why == SSL_ERROR_ZERO_RETURN) return std::nullopt;
  if (why == SSL_ERROR_WANT_READ) {
    return base::fail(ErrorCode::kUnavailable, "no response in time");
  }
  return base::fail(ErrorCode::kUnavailable, "cannot receive: " + ssl_error());
}

}  // namespace ka::tls
