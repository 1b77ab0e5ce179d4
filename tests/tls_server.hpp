// SPDX-License-Identifier: Apache-2.0
// An HTTPS server on 127.0.0.1 that gives each connection the next of a test's responses.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

namespace ka::tests {

/// A key with a certificate that it has signed itself, for `names` ("IP:127.0.0.1").
class Certificate {
 public:
  /// `seconds`: how long it is valid from now on; negative: it has expired.
  explicit Certificate(const std::string& names, long seconds = 3600)
      : key_(EVP_EC_gen("P-256"), EVP_PKEY_free), certificate_(X509_new(), X509_free) {
    X509* it = certificate_.get();
    X509_set_version(it, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(it), 1);
    X509_gmtime_adj(X509_getm_notBefore(it), -7200);
    X509_gmtime_adj(X509_getm_notAfter(it), seconds);
    X509_set_pubkey(it, key_.get());
    const unsigned char name[] = "test";
    X509_NAME_add_entry_by_txt(X509_get_subject_name(it), "CN", MBSTRING_ASC, name, -1, -1, 0);
    X509_set_issuer_name(it, X509_get_subject_name(it));
    extend(NID_basic_constraints, "critical,CA:TRUE");
    extend(NID_subject_alt_name, names);
    REQUIRE(X509_sign(it, key_.get(), EVP_sha256()) > 0);
  }

  void write(const std::filesystem::path& file) const {
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_file(file.c_str(), "w"), BIO_free);
    REQUIRE(PEM_write_bio_X509(bio.get(), certificate_.get()) == 1);
  }

  X509* certificate() const { return certificate_.get(); }
  EVP_PKEY* key() const { return key_.get(); }

 private:
  void extend(int what, const std::string& value) {
    const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
        X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str()), X509_EXTENSION_free);
    REQUIRE(extension);
    X509_add_ext(certificate_.get(), extension.get(), -1);
  }

  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
  std::unique_ptr<X509, decltype(&X509_free)> certificate_;
};

/// What a connection gets, and how it ends.
struct TlsAnswer {
  std::string text;
  bool is_cut = false;      ///< the connection ends without TLS's own word for it
  bool is_old_tls = false;  ///< the server speaks TLS 1.1 at most
};

class TlsServer {
 public:
  /// `certificate` must outlive it.
  TlsServer(const Certificate& certificate, std::vector<TlsAnswer> answers)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL, and clients give up
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener_.get(), 8) == 0);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this, &certificate, answers = std::move(answers)] {
      for (const TlsAnswer& answer : answers) serve(certificate, answer);
    });
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;
  ~TlsServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  const std::string& port() const { return port_; }
  /// As they came, whole.
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
  using Connection = std::unique_ptr<SSL, decltype(&SSL_free)>;

  void serve(const Certificate& certificate, const TlsAnswer& answer) {
    const base::Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer) return;
    const Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
    SSL_CTX_use_certificate(context.get(), certificate.certificate());
    SSL_CTX_use_PrivateKey(context.get(), certificate.key());
    if (answer.is_old_tls) {
      SSL_CTX_set_max_proto_version(context.get(), TLS1_1_VERSION);
      SSL_CTX_set_security_level(context.get(), 0);
    }
    const Connection connection(SSL_new(context.get()), SSL_free);
    SSL_set_fd(connection.get(), peer.get());
    if (SSL_accept(connection.get()) != 1) return;
    if (!read_request(connection.get())) return;
    std::size_t sent = 0;
    if (!answer.text.empty()) {
      SSL_write_ex(connection.get(), answer.text.data(), answer.text.size(), &sent);
    }
    if (!answer.is_cut) SSL_shutdown(connection.get());
    ::shutdown(peer.get(), SHUT_WR);
    char ignored[512];
    while (::read(peer.get(), ignored, sizeof(ignored)) > 0) {
    }
  }

  static std::size_t length_of(const std::string& request) {
    const auto head = request.find("\r\n\r\n");
    if (head == std::string::npos) return std::string::npos;
    const std::string field = "Content-Length: ";
    const auto at = request.find(field);
    return head + 4 + (at < head ? std::stoul(request.substr(at + field.size())) : 0);
  }

  bool read_request(SSL* connection) {
    std::string request;
    while (request.size() < length_of(request)) {
      char buffer[4096];
      std::size_t size = 0;
      if (SSL_read_ex(connection, buffer, sizeof(buffer), &size) != 1) return false;
      request.append(buffer, size);
    }
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
    return true;
  }

  base::Fd listener_;
  std::string port_;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

/// An HTTP response with its length.
inline std::string http_response(const std::string& status, const std::string& body,
                                 const std::string& fields = "") {
  return "HTTP/1.1 " + status + "\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

/// One without: it lasts until the connection ends.
inline std::string http_stream(const std::string& body) { return "HTTP/1.1 200 OK\r\n\r\n" + body; }

}  // namespace ka::tests
