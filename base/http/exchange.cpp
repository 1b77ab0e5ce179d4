// SPDX-License-Identifier: Apache-2.0
#include "base/http/exchange.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <utility>

namespace ka::http {
namespace {

using base::ErrorCode;
using base::Result;

constexpr std::string_view kEndOfLine = "\r\n";
constexpr int kNoContent = 204;
constexpr int kNotModified = 304;

auto invalid(const std::string& what) { return base::fail(ErrorCode::kInvalid, what); }

template <typename Number>
bool read_number(std::string_view text, Number& into, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into, base);
  return error == std::errc{} && end == text.data() + text.size();
}

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  text.remove_suffix(text.size() - std::min(text.find_last_not_of(" \t") + 1, text.size()));
  return text;
}

/// The other form, a date, is none that we wait for. (RFC 9110, 10.2.3)
std::chrono::seconds read_seconds(std::string_view text) {
  std::uint32_t number = 0;
  return std::chrono::seconds(read_number(text, number) ? number : 0);
}

}  // namespace

std::string format_request(const Request& request, const RequestFields& fields) {
  std::string text = request.method + ' ' + request.target + " HTTP/1.1\r\nHost: " + fields.host +
                     "\r\nConnection: close\r\n";
  if (!fields.bearer.empty()) text += "Authorization: Bearer " + fields.bearer + "\r\n";
  if (request.method != "GET" || !request.body.empty()) {
    text += "Content-Type: " + fields.content_type +
            "\r\nContent-Length: " + std::to_string(request.body.size()) + "\r\n";
  }
  return text + "\r\n" + request.body;
}

Result<bool> ResponseReader::feed(std::string_view bytes) {
  unread_ += bytes;
  for (;;) {
    const auto goes_on = step();
    if (!goes_on) return unexpected(goes_on.error());
    if (!*goes_on) return state_ == State::kDone;
  }
}

Result<void> ResponseReader::close() {
  if (state_ == State::kUntilClose) state_ = State::kDone;
  if (state_ == State::kDone) return {};
  return base::fail(ErrorCode::kUnavailable,
                    "the connection was closed before the response was complete");
}

Result<bool> ResponseReader::step() {
  switch (state_) {
    case State::kDone:
      return false;
    case State::kLength:
    case State::kUntilClose:
    case State::kChunk:
      return step_body();
    default:
      return step_line();
  }
}

Result<bool> ResponseReader::step_line() {
  const std::size_t end = unread_.find(kEndOfLine);
  head_size_ += end == std::string::npos ? 0 : end;
  if (head_size_ > limits_.head || std::min(end, unread_.size()) > limits_.head) {
    return invalid("a header line that is too long");
  }
  if (end == std::string::npos) return false;
  const std::string line = unread_.substr(0, end);
  unread_.erase(0, end + kEndOfLine.size());
  if (auto read = read_line(line); !read) return unexpected(std::move(read.error()));
  return true;
}

Result<void> ResponseReader::read_line(std::string_view line) {
  if (state_ == State::kStatus) return read_status(line);
  if (state_ == State::kChunkSize) return read_chunk_size(line);
  if (state_ == State::kHead && !line.empty()) return read_field(line);
  if (state_ == State::kChunkEnd && !line.empty()) return invalid("a malformed chunk");
  if (state_ == State::kTrailer && !line.empty()) return {};
  if (state_ == State::kHead) {
    state_ = body_state();
  } else {
    state_ = state_ == State::kChunkEnd ? State::kChunkSize : State::kDone;
  }
  return {};
}

Result<void> ResponseReader::read_status(std::string_view line) {
  constexpr std::string_view kVersion = "HTTP/1.";
  constexpr std::size_t kStatusAt = 9;  // behind "HTTP/1.1 "
  unsigned status = 0;
  const std::string_view code = line.substr(std::min(kStatusAt, line.size()), 3);
  if (!line.starts_with(kVersion) || code.size() != 3 || !read_number(code, status)) {
    return invalid("something other than HTTP");
  }
  status_ = static_cast<int>(status);
  state_ = State::kHead;
  return {};
}

Result<void> ResponseReader::read_field(std::string_view line) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return invalid("something other than HTTP");
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (same_name(name, "transfer-encoding")) chunked_ = same_name(value, "chunked");
  if (same_name(name, "retry-after")) retry_after_ = read_seconds(value);
  if (!same_name(name, "content-length")) return {};
  if (!read_number(value, left_) || left_ > limits_.body)
    return invalid("an invalid Content-Length");
  has_length_ = true;
  return {};
}

ResponseReader::State ResponseReader::body_state() const {
  if (status_ == kNoContent || status_ == kNotModified) return State::kDone;
  if (chunked_) return State::kChunkSize;
  if (!has_length_) return State::kUntilClose;
  return left_ == 0 ? State::kDone : State::kLength;
}

Result<void> ResponseReader::read_chunk_size(std::string_view line) {
  if (!read_number(line, left_, 16) || left_ > limits_.body) return invalid("a malformed chunk");
  head_size_ = 0;  // a stream has chunks without end
  state_ = left_ == 0 ? State::kTrailer : State::kChunk;
  return {};
}

Result<bool> ResponseReader::step_body() {
  const bool has_end = state_ != State::kUntilClose;
  const std::size_t size = has_end ? std::min(left_, unread_.size()) : unread_.size();
  if (size == 0) return false;
  if (body_.size() + size > limits_.body) return invalid("a response that is too long");
  body_.append(unread_, 0, size);
  unread_.erase(0, size);
  if (!has_end) return false;
  left_ -= size;
  if (left_ == 0) state_ = state_ == State::kChunk ? State::kChunkEnd : State::kDone;
  return true;
}

}  // namespace ka::http
