// SPDX-License-Identifier: Apache-2.0
// Follows domains of one libvirt daemon, and keeps its record of their pins as ordered.
//
// libvirt's calls block for an unbounded time, so a separate thread makes them. Orders wait in a
// queue that holds the newest for each domain. Nothing ever waits for that thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "vmm/libvirt/numatune.hpp"
#include "vmm/libvirt/pins.hpp"

namespace ka::libvirt {

/// A domain as libvirt last reported it.
struct DomainSeen {
  std::string name;
  std::string uuid;  ///< as in QEMU's argument -uuid; empty where there is no such domain
  bool runs = false;
  unsigned run = 0;  ///< libvirt's number of this run, another one at each start
  int vcpus = 0;     ///< plugged, of a domain that runs

  bool operator==(const DomainSeen&) const = default;
};

/// It was restarted: facts of the previous run no longer hold.
inline bool is_another_run(const DomainSeen& before, const DomainSeen& now) {
  return now.runs && before.run != now.run;
}

struct Order {
  std::string domain;
  Pins pins;
  std::optional<MemoryOrder> memory;  ///< absent: the domain's nodes are left as they are
  bool in_config = false;             ///< also for the domain's next start, where it has one
  /// In place of `pins`: what the domain would have without us. That is what its own configuration
  /// says, or, where there is none or we wrote it, every CPU. `memory` is then what stands for
  /// every node.
  bool give_back = false;

  bool operator==(const Order&) const = default;
};

/// How long a call may wait before libvirt counts as hung.
inline constexpr std::chrono::seconds kHungTime{4};

struct ClientOptions {
  std::string uri;
  /// Interval of polling for what libvirt has no event for (hotplugged vCPUs), and between
  /// attempts to connect.
  std::chrono::milliseconds interval{1000};
};

/// Called on the client's thread: hand over to the loop, and return. Empty functions are skipped.
struct ClientHandlers {
  /// Whether libvirt is connected; with its name, or the reason.
  std::function<void(bool up, const std::string& text)> connection;
  /// A watched domain started or stopped, has another number of vCPUs, or another program
  /// changed its pins; and each one once after a connection.
  std::function<void(const DomainSeen&)> domain;
  /// This order was carried out with this many calls, as far as no newer one came meanwhile; or why
  /// it was not. It is tried again until it is, and repeated when another program changes pins;
  /// reported only when the result changes. One that gives back is reported in any case, and is
  /// done then: pins that come after it are others'.
  std::function<void(const Order& order, const base::Result<int>& calls)> pinned;
};

class Client {
 public:
  /// Loads libvirt and starts the thread. kInvalid for what vmm::check_libvirt_uri() refuses,
  /// kUnavailable without libvirt. `clock` must outlive the client.
  static base::Result<Client> start(const base::Clock& clock, ClientOptions options,
                                    ClientHandlers handlers);

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  /// No handler is called any more once it is gone. A thread that hangs in libvirt is left to end
  /// by itself.
  ~Client();

  /// The domains to watch, by name: these and no others. Orders for others are dropped.
  void watch_only(std::set<std::string> domains);
  /// Replaces the order for that domain, which must be watched.
  void order(Order order);
  /// Whether a call has waited for libvirt for kHungTime. libvirt's keepalive cannot tell: its
  /// messages come from the event loop, which does not run while a call waits.
  bool is_hung() const;

 private:
  struct Shared;
  class Worker;
  explicit Client(std::shared_ptr<Shared> shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace ka::libvirt
