// SPDX-License-Identifier: Apache-2.0
// A connected unix stream socket on the loop: reads what comes, writes what it is given, in order.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.hpp"

namespace ka::rpc {

class Socket {
 public:
  /// More than this unwritten means that the peer does not read: the connection is given up.
  static constexpr std::size_t kMaxUnwritten = std::size_t{16} << 20;

  struct Events {
    std::function<void(std::string_view)> bytes;
    /// The connection ended, with the reason. Called once, and never from within send().
    std::function<void(const std::string&)> closed;
  };

  /// Takes a connected, non-blocking socket and begins to read.
  Socket(boost::asio::io_context& io, base::Fd connected, Events events);
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  /// Closes; no event comes after that.
  ~Socket();

  void send(std::string bytes);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace ka::rpc
