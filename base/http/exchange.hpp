// SPDX-License-Identifier: Apache-2.0
// The client's side of HTTP/1.1 without I/O: one request as bytes, one answer from bytes. All
// clients of ours are made of it: the blocking ones (client.hpp, base/tls), the one on Asio's loop
// (query.hpp) and the shim proxy's, whose loop is its own. It is written by hand because Beast's
// parser aborts at some chunks that are malformed, and a peer may be a VMM.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/http/message.hpp"
#include "base/result.hpp"

namespace ka::http {

/// Fields of a request's head. None may contain a line's end.
struct RequestFields {
  std::string host = "localhost";
  std::string content_type = "application/json";  ///< of the body
  std::string bearer;                             ///< a token; empty: the field is left out
};

/// Asks for the end of the connection after the answer.
std::string format_request(const Request& request, const RequestFields& fields = {});

/// Bytes of an answer that are read at most.
struct ResponseLimits {
  std::size_t head = 16u << 10;
  std::size_t body = 1u << 20;
};

class ResponseReader {
 public:
  explicit ResponseReader(ResponseLimits limits = {}) : limits_(limits) {}

  /// True when the answer is whole; what comes behind it is ignored. kInvalid: it is no HTTP, or
  /// longer than its limits.
  base::Result<bool> feed(std::string_view bytes);
  /// The peer closed the connection. kUnavailable: before the answer was whole.
  base::Result<void> close();

  /// The head has been read: status() counts, and body() grows.
  bool has_head() const { return state_ > State::kHead; }
  int status() const { return status_; }
  bool is_chunked() const { return chunked_; }
  /// The field Retry-After; 0: there is none, or it is a date.
  std::chrono::seconds retry_after() const { return retry_after_; }
  /// What has come of the body. A reader of a stream may take from it: the limit counts what is
  /// left.
  std::string& body() { return body_; }

 private:
  /// kStatus -> kHead -> kLength | kUntilClose | kChunkSize | kDone
  /// kChunkSize -> kChunk -> kChunkEnd -> kChunkSize;  kChunkSize (0) -> kTrailer
  /// kLength, kUntilClose, kTrailer -> kDone
  enum class State {
    kStatus,
    kHead,
    kLength,
    kUntilClose,
    kChunkSize,
    kChunk,
    kChunkEnd,
    kTrailer,
    kDone,
  };

  /// Reads what it can. False: it needs more bytes, or none.
  base::Result<bool> step();
  base::Result<bool> step_line();
  base::Result<bool> step_body();
  base::Result<void> read_line(std::string_view line);
  base::Result<void> read_status(std::string_view line);
  base::Result<void> read_field(std::string_view line);
  base::Result<void> read_chunk_size(std::string_view line);
  State body_state() const;

  ResponseLimits limits_;
  State state_ = State::kStatus;
  std::string unread_;
  std::size_t head_size_ = 0;
  int status_ = 0;
  bool chunked_ = false;
  bool has_length_ = false;
  std::chrono::seconds retry_after_{0};
  std::size_t left_ = 0;  ///< of the body, or of the chunk
  std::string body_;
};

}  // namespace ka::http
