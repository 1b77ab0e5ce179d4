// SPDX-License-Identifier: Apache-2.0
// The proxy's main loop: containerd's connections to it, each spliced to one of its own to the real
// shim, for as long as the shim lives; and reports what it saw to the daemon.
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "shim-ext/proxy/loop.hpp"
#include "shim-ext/proxy/observer.hpp"
#include "shim-ext/proxy/outbox.hpp"
#include "shim-ext/proxy/pair.hpp"
#include "shim-ext/proxy/reporter.hpp"
#include "shim-ext/proxy/shared_pool.hpp"

namespace ka::proxy {

class Relay {
 public:
  /// `listener`: where containerd connects. `guard`: a connection to the shim on which nothing is
  /// ever sent; its end is the shim's. Both non-blocking.
  struct Sockets {
    base::Fd listener;
    base::Fd guard;
    std::string shim_path;
  };

  /// `clock` must outlive it. `api_socket`: the daemon's. `bundles`: as for Reporter. `pool`: to be
  /// stayed on.
  Relay(const base::Clock& clock, Sockets sockets, std::string api_socket,
        std::filesystem::path bundles, SharedPool pool);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Returns when the shim has ended and containerd has read all its output.
  void run();
  /// One turn of it: waits for what is to be done, until `limit` at most, and does it.
  void turn(Loop::Time limit);

 private:
  struct Listener final : Watch {
    explicit Listener(Relay& owner) : relay(owner) {}
    void ready(std::uint32_t) override { relay.accept(); }
    Relay& relay;
  };
  struct Guard final : Watch {
    explicit Guard(Relay& owner) : relay(owner) {}
    void ready(std::uint32_t) override { relay.check_shim(); }
    Relay& relay;
  };
  /// A connection with what watches it.
  struct Connection {
    std::unique_ptr<Observer> observer;
    std::unique_ptr<Pair> pair;
  };
  using Connections = std::list<Connection>;

  void accept();
  void listen();
  void stop_listening();
  void splice(base::Fd client, base::Fd shim);
  void ended(Connections::iterator connection);
  void check_shim();
  void passed();
  void digest();
  void post(const std::vector<Report>& reports);
  Loop::Time next_time() const;

  Loop loop_;
  Sockets sockets_;
  Listener listener_{*this};
  Guard guard_{*this};
  bool undigested_ = false;  ///< bytes passed that no observer has decoded
  Loop::Time passed_at_;     ///< the first of it
  Outbox outbox_;
  Reporter reporter_;
  SharedPool pool_;
  Loop::Time next_pool_check_;  ///< at the pool
  Connections connections_;
  Connections over_;  ///< they may still have an event in this turn
  /// Set while no connection is accepted, for lack of descriptors.
  std::optional<Loop::Time> listen_again_;
  bool shim_gone_ = false;
  std::array<char, std::size_t{64} << 10> block_;
};

}  // namespace ka::proxy
