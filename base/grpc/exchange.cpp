// SPDX-License-Identifier: Apache-2.0
#include "base/grpc/exchange.hpp"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "base/grpc/framing.hpp"

namespace ka::grpc {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

constexpr std::string_view kHttpOk = "200";
constexpr std::size_t kFieldOverhead = 32;  ///< RFC 9113, 6.5.2

std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// libnghttp2 copies names and values, and changes neither.
nghttp2_nv field(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

struct DeleteSession {
  void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
};
struct DeleteCallbacks {
  void operator()(nghttp2_session_callbacks* callbacks) const {
    nghttp2_session_callbacks_del(callbacks);
  }
};

/// The fields of a response with the call's status.
struct Outcome {
  std::string http_status;
  std::optional<std::string> grpc_status;
  std::string grpc_message;
};

}  // namespace

/// libnghttp2's callbacks: each returns 0, or an error that ends the session.
class Exchange::Impl {
 public:
  Impl(const Request& request, Limits limits) : limits_(limits), body_(frame(request.message)) {
    open_session();
    submit(request.path);
    collect_output();
  }

  std::string drain_output() { return std::exchange(output_, {}); }

  Result<bool> feed(std::string_view bytes) {
    if (ended_) return true;
    received_ += bytes.size();
    if (received_ > limits_.message + limits_.overhead) trouble_ = "endless response";
    if (trouble_.empty()) receive(bytes);
    if (!trouble_.empty()) return fail(ErrorCode::kInvalid, trouble_);
    return ended_ ? finish() : Result<bool>(false);
  }

  rpc::Response release_response() { return std::exchange(response_, {}); }

 private:
  static Impl& self(void* user) { return *static_cast<Impl*>(user); }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* user) {
    Impl& impl = self(user);
    if (frame->hd.stream_id != impl.stream_) return 0;
    return impl.read_field(text_of(name, name_size), text_of(value, value_size));
  }

  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* data,
                     std::size_t size, void* user) {
    Impl& impl = self(user);
    return stream == impl.stream_ ? impl.read_body(text_of(data, size)) : 0;
  }

  static int on_close(nghttp2_session*, std::int32_t stream, std::uint32_t error, void* user) {
    Impl& impl = self(user);
    if (stream != impl.stream_) return 0;
    impl.ended_ = true;
    impl.error_ = error;
    return 0;
  }

  static ssize_t read_request(nghttp2_session*, std::int32_t, std::uint8_t* buffer,
                              std::size_t size, std::uint32_t* flags, nghttp2_data_source*,
                              void* user) {
    Impl& impl = self(user);
    const std::size_t part = std::min(size, impl.body_.size() - impl.sent_);
    std::memcpy(buffer, impl.body_.data() + impl.sent_, part);
    impl.sent_ += part;
    if (impl.sent_ == impl.body_.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(part);
  }

  void open_session() {
    nghttp2_session_callbacks* made = nullptr;
    nghttp2_session_callbacks_new(&made);
    const std::unique_ptr<nghttp2_session_callbacks, DeleteCallbacks> callbacks(made);
    nghttp2_session_callbacks_set_on_header_callback(made, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, on_close);
    nghttp2_session* session = nullptr;
    nghttp2_session_client_new(&session, made, this);
    session_.reset(session);
  }

  void submit(const std::string& path) {
    const std::array settings{nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                              nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
                                                     static_cast<std::uint32_t>(limits_.fields)}};
    nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
    const std::array fields{field(":method", "POST"),
                            field(":scheme", "http"),
                            field(":path", path),
                            field(":authority", "localhost"),
                            field("content-type", "application/grpc"),
                            field("te", "trailers")};
    nghttp2_data_provider body{};
    body.read_callback = read_request;
    stream_ = nghttp2_submit_request(session_.get(), nullptr, fields.data(), fields.size(), &body,
                                     nullptr);
  }

  void collect_output() {
    const std::uint8_t* bytes = nullptr;
    for (;;) {
      const auto size = nghttp2_session_mem_send(session_.get(), &bytes);
      if (size <= 0) return;
      output_ += text_of(bytes, static_cast<std::size_t>(size));
    }
  }

  /// A protocol error ends the session once its GOAWAY is on its way.
  void receive(std::string_view bytes) {
    const auto read = nghttp2_session_mem_recv(
        session_.get(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (read < 0 && trouble_.empty()) {
      trouble_ = std::string("no HTTP/2: ") + nghttp2_strerror(static_cast<int>(read));
    }
    if (trouble_.empty()) collect_output();
    if (!ended_ && nghttp2_session_want_read(session_.get()) == 0 && trouble_.empty()) {
      trouble_ = "no HTTP/2: a protocol error ended the connection";
    }
  }

  int refuse(const char* why) {
    trouble_ = why;
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }

  int read_field(std::string_view name, std::string_view value) {
    fields_ += name.size() + value.size() + kFieldOverhead;
    if (fields_ > limits_.fields) return refuse("too many header fields");
    if (name == ":status") outcome_.http_status = value;
    if (name == "grpc-status") outcome_.grpc_status = value;
    if (name == "grpc-message") outcome_.grpc_message = value;
    return 0;
  }

  int read_body(std::string_view data) {
    if (message_.size() + data.size() > limits_.message + kPrefixSize) {
      return refuse("the message is too long");
    }
    message_ += data;
    return 0;
  }

  Result<bool> finish() {
    if (!outcome_.grpc_status) return fail(ErrorCode::kUnavailable, why_no_status());
    const std::string& text = *outcome_.grpc_status;
    int code = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
    if (error != std::errc() || end != text.data() + text.size() || code < 0) {
      return fail(ErrorCode::kInvalid, "grpc-status is not a number");
    }
    response_.code = static_cast<rpc::Code>(code);
    response_.message = decode_status_message(outcome_.grpc_message);
    if (response_.code != rpc::Code::kOk) return true;
    auto message = unframe(std::move(message_));
    if (!message) return unexpected(std::move(message.error()));
    response_.payload = std::move(*message);
    return true;
  }

  std::string why_no_status() const {
    if (error_ != NGHTTP2_NO_ERROR) {
      return std::string("the server reset the call: ") + nghttp2_http2_strerror(error_);
    }
    if (outcome_.http_status != kHttpOk) return "HTTP status " + outcome_.http_status;
    return "the response has no grpc-status";
  }

  Limits limits_;
  std::string output_;
  std::string body_;  ///< of the request
  std::size_t sent_ = 0;
  std::unique_ptr<nghttp2_session, DeleteSession> session_;
  std::int32_t stream_ = 0;
  std::size_t received_ = 0, fields_ = 0;
  Outcome outcome_;
  std::string message_;  ///< with its prefix
  std::string trouble_;
  bool ended_ = false;
  std::uint32_t error_ = NGHTTP2_NO_ERROR;
  rpc::Response response_;
};

Exchange::Exchange(const Request& request, Limits limits)
    : impl_(std::make_unique<Impl>(request, limits)) {}

Exchange::~Exchange() = default;

std::string Exchange::drain_output() { return impl_->drain_output(); }

Result<bool> Exchange::feed(std::string_view bytes) { return impl_->feed(bytes); }

rpc::Response Exchange::release_response() { return impl_->release_response(); }

}  // namespace ka::grpc
