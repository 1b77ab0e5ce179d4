// SPDX-License-Identifier: Apache-2.0
#include "base/tls/client.hpp"

#include <array>
#include <optional>
#include <utility>

namespace ka::tls {
namespace {

using base::Result;

constexpr int kSuccess = 200;
constexpr std::chrono::seconds kConnect{10};
constexpr http::ResponseLimits kWhole{.head = 64u << 10, .body = 64u << 20};
constexpr http::ResponseLimits kStream{.head = 64u << 10, .body = 8u << 20};

class Exchange {
 public:
  Exchange(Session session, http::ResponseLimits limits)
      : session_(std::move(session)), reader_(limits) {}

  /// Reads once. True when the answer is whole.
  Result<bool> receive() {
    std::array<char, 16384> buffer{};
    const auto bytes = session_.receive(buffer);
    if (!bytes) return unexpected(bytes.error());
    if (*bytes) return reader_.feed(**bytes);
    const auto closed = reader_.close();
    if (!closed) return unexpected(closed.error());
    return true;
  }

  /// The lines that are complete; false: no more are wanted.
  bool hand_over(const std::function<bool(std::string_view line)>& handle) {
    std::string& text = reader_.body();
    std::size_t begin = 0;
    bool wanted = true;
    for (auto end = text.find('\n'); wanted && end != std::string::npos;
         end = text.find('\n', begin)) {
      wanted = handle(std::string_view(text).substr(begin, end - begin));
      begin = end + 1;
    }
    text.erase(0, begin);
    return wanted;
  }

  bool is_success() const { return reader_.has_head() && reader_.status() == kSuccess; }
  http::Response response() {
    return {.status = reader_.status(),
            .body = std::move(reader_.body()),
            .retry_after = reader_.retry_after()};
  }

 private:
  Session session_;
  http::ResponseReader reader_;
};

Result<Exchange> begin(const Server& server, const http::Request& request,
                       const http::RequestFields& fields, std::chrono::seconds limit,
                       http::ResponseLimits limits) {
  auto session = Session::open(server, kConnect);
  if (!session) return unexpected(session.error());
  session->set_limit(limit);
  if (auto sent = session->send(http::format_request(request, fields)); !sent) {
    return unexpected(sent.error());
  }
  return Exchange(std::move(*session), limits);
}

}  // namespace

Result<http::Response> call(const Server& server, const http::Request& request,
                            const http::RequestFields& fields, std::chrono::seconds limit) {
  auto exchange = begin(server, request, fields, limit, kWhole);
  if (!exchange) return unexpected(exchange.error());
  for (;;) {
    const auto whole = exchange->receive();
    if (!whole) return unexpected(whole.error());
    if (*whole) return exchange->response();
  }
}

Result<http::Response> stream_lines(const Server& server, const http::Request& request,
                                    const http::RequestFields& fields, std::chrono::seconds silence,
                                    const std::function<bool(std::string_view line)>& handle) {
  auto exchange = begin(server, request, fields, silence, kStream);
  if (!exchange) return unexpected(exchange.error());
  for (;;) {
    const auto whole = exchange->receive();
    if (!whole) return unexpected(whole.error());
    const bool wanted = !exchange->is_success() || exchange->hand_over(handle);
    if (!wanted || (*whole && exchange->is_success())) return http::Response{};
    if (*whole) return exchange->response();
  }
}

}  // namespace ka::tls
