// SPDX-License-Identifier: Apache-2.0
// A connection of containerd and the one to the real shim that belongs to it: what comes on one is
// written to the other, byte for byte, in order.
//
// It reads no faster than the other side takes: at most one block is held in each direction. When
// one side ends, all that it had sent is delivered first; then the other is ended, in the same
// way: an end of writing as such, a closed socket as a closed socket.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "shim-ext/proxy/loop.hpp"

namespace ka::proxy {

class Pair {
 public:
  struct Events {
    /// What was passed on, after it was.
    std::function<void(std::string_view)> to_shim;
    std::function<void(std::string_view)> to_client;
    /// Both sides are closed, once. The pair must outlive the loop's turn.
    std::function<void()> ended;
  };

  /// Takes two connected, non-blocking sockets. `block` is what bytes are read into: pairs of one
  /// loop may share it.
  Pair(Loop& loop, base::Fd client, base::Fd shim, std::span<char> block, Events events);
  ~Pair();
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

 private:
  struct Side final : Watch {
    Side(Pair& owner, base::Fd socket) : pair(owner), fd(std::move(socket)) {}
    void ready(std::uint32_t events) override { pair.on_ready(*this, events); }

    Pair& pair;
    base::Fd fd;
    std::string unwritten;       ///< read from the other side, to be written to this one
    std::size_t written = 0;     ///< of `unwritten`
    bool ended = false;          ///< it sends nothing more
    bool closed = false;         ///< it takes nothing more
    bool end_forwarded = false;  ///< it knows that the other side ended
    std::uint32_t watched_for = 0;
    bool watched = false;

    bool drained() const { return unwritten.empty(); }
    void drop_unwritten() {
      std::string().swap(unwritten);
      written = 0;
    }
  };

  void on_ready(Side& side, std::uint32_t events);
  Side& other(const Side& side) { return &side == &client_ ? shim_ : client_; }
  void pump(Side& from, Side& to);
  void pass_on(std::string_view bytes, Side& to);
  void flush(Side& to);
  std::size_t write(std::string_view bytes, Side& to);
  void advance();
  bool is_over() const;
  void forward_end(const Side& from, Side& to);
  void watch(Side& side);
  void end();

  Loop& loop_;
  std::span<char> block_;
  Events events_;
  Side client_;
  Side shim_;
};

}  // namespace ka::proxy
