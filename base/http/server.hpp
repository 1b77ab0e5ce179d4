// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 on a listening socket: reads requests within limits, has them answered, writes the
// answers. One thread: the handler runs on the io_context and is never called twice at once.
//
// No client can harm another one: each has a bounded time and a bounded amount of memory, and when
// there are too many, the one that has been silent for longest makes room.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/http/message.hpp"
#include "base/result.hpp"

namespace ka::http {

struct Limits {
  std::size_t body = 1 << 20;       ///< bytes of a request's body; more is 413
  std::size_t header = 16 << 10;    ///< bytes of a request's line and fields; more is 431
  std::size_t connections = 128;    ///< at a time
  std::size_t streams = 16;         ///< listeners of feeds at a time; more is 503
  std::size_t lines_behind = 1024;  ///< lines that a listener may lag behind before it is dropped
  std::chrono::milliseconds read{10'000};   ///< to send one whole request, silence before included
  std::chrono::milliseconds write{10'000};  ///< to take one answer, or one line of a feed
};

using Handler = std::function<Response(const Request&)>;
/// Why the server cannot accept connections: out of descriptors or of memory. Called for each
/// failed attempt.
using OnTrouble = std::function<void(const std::string& trouble)>;

class Server {
 public:
  /// Serves `listener`, a listening and non-blocking socket (unix or TCP), which stays the
  /// caller's and must stay open as long as the Server lives. `clock` must outlive `io`.
  Server(boost::asio::io_context& io, const base::Clock& clock, int listener, Handler handler,
         OnTrouble on_trouble, Limits limits = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Closes every connection.
  ~Server();

  /// Accepts connections of this socket from now on, in place of the one before; those that there
  /// are go on. Any error: there is no descriptor for it now.
  base::Result<void> listen(int listener);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace ka::http
