// SPDX-License-Identifier: Apache-2.0
// The plugin's reports and their receiver.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/ledger/event.hpp"
#include "shim-ext/nri/allocator.hpp"

namespace ka::nri {

/// A container that the runtime is about to create.
struct CreateRequest {
  std::string sandbox;
  std::string container;
  std::optional<bool> wants_environment;  ///< the pod's annotation
  Described described{};
};

/// Additions to the container, and changes of others. But for its CPUs, nothing that the runtime
/// has set is changed.
struct Adjustment {
  struct Mount {
    std::string source;       ///< a folder of this machine
    std::string destination;  ///< where the container sees it, and cannot write to it
  };
  std::vector<Mount> mounts;
  std::vector<std::pair<std::string, std::string>> environment;  ///< names and values
  std::optional<ContainerSets> sets{};  ///< absent: as the runtime has them
  Updates updates{};
};

/// The daemon's side of the plugin. Calls come from the loop, one at a time.
class Listener {
 public:
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  virtual ~Listener() = default;

  /// The runtime is about to do this, and waits (with a lock that is node-wide): when this returns,
  /// no thread may run where the event forbids it. What lets threads onto more CPUs can wait.
  virtual void before(const std::vector<policy::ledger::Event>& events) = 0;

  /// The runtime is about to create a container: before(), and the adjustment of the container. An
  /// error refuses it.
  virtual base::Result<Adjustment> creating(const std::vector<policy::ledger::Event>& events,
                                            const CreateRequest& request) {
    (void)request;
    before(events);
    return Adjustment{};
  }

  /// The runtime is about to change a container's limits: before(), and what changes for others. An
  /// error refuses it.
  virtual base::Result<Updates> updating(const std::vector<policy::ledger::Event>& events,
                                         const policy::ledger::ContainerSeen& update) {
    (void)update;
    before(events);
    return Updates{};
  }

  /// A container has exited: what changes for others. after() follows.
  virtual Updates stopped(const std::string& container) {
    (void)container;
    return {};
  }

  /// All that the runtime has, and the ids of its pods: what is to be changed. synchronized()
  /// follows.
  virtual Updates synchronizing(const std::vector<Described>& containers,
                                const std::set<std::string>& sandboxes) {
    (void)containers;
    (void)sandboxes;
    return {};
  }

  /// The runtime is about to start a container whose cgroup is there and whose program has not
  /// begun: before(), and `go_on` once its guest is as it must be, or cannot be waited for any
  /// longer.
  virtual void starting(const std::vector<policy::ledger::Event>& events,
                        const Described& container,
                        // Who waits keeps it. NOLINTNEXTLINE(performance-unnecessary-value-param)
                        std::function<void()> go_on) {
    (void)container;
    before(events);
    go_on();
  }

  /// The runtime has done this, and does not wait: place the sandbox as planned.
  virtual void after(const std::vector<policy::ledger::Event>& events,
                     const std::string& sandbox) = 0;

  /// All pods and containers that the runtime has: others that it reported before are gone.
  virtual void synchronized(const std::vector<policy::ledger::Event>& events) = 0;

  /// Pods of which cannot be seen whether they have a VM, by id, and why: others than before.
  virtual void unseen(const std::map<std::string, std::string>& pods) { (void)pods; }

  /// An event was answered within `elapsed`.
  virtual void answered(std::string_view method, std::chrono::nanoseconds elapsed) = 0;

  /// The runtime has accepted the plugin, or there is no connection (`reason`, reported once).
  /// `accepts_updates`: it can be asked to change containers between its calls.
  virtual void connected(const std::string& runtime, bool accepts_updates) = 0;
  virtual void disconnected(const std::string& reason) = 0;
};

}  // namespace ka::nri
