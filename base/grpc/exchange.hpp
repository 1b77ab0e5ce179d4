// SPDX-License-Identifier: Apache-2.0
// The client's side of one unary gRPC call without I/O, over an HTTP/2 connection of its own
// (github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md). Frames and header compression are libnghttp2's;
// this adds gRPC's framing and status, and bounds what a server may send.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/rpc/message.hpp"

namespace ka::grpc {

struct Request {
  std::string path;     ///< "/v1.PodResourcesLister/List"
  std::string message;  ///< encoded
};

/// What is read of a response at most, in bytes.
struct Limits {
  std::size_t message = std::size_t{4} << 20;  ///< gRPC's own default
  std::size_t fields = 16u << 10;              ///< of all header and trailer fields, uncompressed
  std::size_t overhead = 1u << 20;             ///< of all frames, apart from the message
};

class Exchange {
 public:
  explicit Exchange(const Request& request, Limits limits = {});
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();

  /// Bytes for the server: to be called at first and after each feed(). May be empty.
  std::string drain_output();
  /// True once the response is whole; what follows is ignored. kInvalid: it is no gRPC, or longer
  /// than its limits; kUnavailable: the server ended the call without a status.
  base::Result<bool> feed(std::string_view bytes);
  /// Once it is whole: the status, and with kOk the message.
  rpc::Response release_response();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ka::grpc
