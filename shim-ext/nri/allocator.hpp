// SPDX-License-Identifier: Apache-2.0
// Who gives containers their CPUs through NRI, where that is not kubelet (mode = "managed").
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/ledger/event.hpp"
#include "policy/managed/alignment.hpp"
#include "policy/managed/rules.hpp"

namespace ka::nri {

/// A device file of a container.
struct DeviceNumber {
  bool block = false;  ///< else a character device
  int major = 0, minor = 0;

  bool operator==(const DeviceNumber&) const = default;
};

/// A container as the runtime describes it.
struct Described {
  policy::managed::Candidate candidate;  ///< without its pod's quality of service
  policy::managed::Needs needs;          ///< without its devices' nodes
  policy::managed::PodNeeds pod;
  std::vector<DeviceNumber> devices;
  std::string pod_cgroup;   ///< as the runtime names its pod's (cgroup_parent); empty: not known
  std::string cgroup;       ///< as the runtime names it (cgroups_path)
  policy::CpuSet cpus;      ///< that it has by the runtime's word; empty: not set
  policy::NodeSet mems;     ///< the same
  bool outside_vm = false;  ///< its pod has a process of its own that is known, and no VMM
};

/// Sets that the runtime is to write.
struct ContainerSets {
  std::string container;
  policy::CpuSet cpus;   ///< empty: as they are; NRI has no word for an empty set
  policy::NodeSet mems;  ///< empty: as they are

  bool operator==(const ContainerSets&) const = default;
};

using Updates = std::vector<ContainerSets>;

/// The runtime, where it can be asked to change containers between its calls.
class Updater {
 public:
  Updater() = default;
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;
  virtual ~Updater() = default;

  /// Asks for `updates`. Calls `done` when the runtime has answered, from the loop; never where the
  /// connection ends before. What it could not do, it has not done: the cgroups say.
  virtual void update(const Updates& updates, std::function<void()> done) = 0;
};

/// Each call that changes who has what has written it to disk when it returns; what follows for the
/// runtime is in updates(), for the ledger in complete().
class Allocator {
 public:
  Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;
  virtual ~Allocator() = default;

  /// A container is about to be created. The error refuses it, and nothing has changed.
  virtual base::Result<void> create(const Described& container) = 0;
  /// Its CPU limit is about to change; 0: as it is. The error refuses that.
  virtual base::Result<void> resize(const std::string& container, std::int64_t quota,
                                    std::int64_t period) = 0;
  /// It exited.
  virtual void end(const std::string& container) = 0;
  /// All containers and pods that the runtime has.
  virtual void synchronize(const std::vector<Described>& all,
                           const std::set<std::string>& sandboxes) = 0;
  /// It is about to be started. Where its creation was not reported, it is taken in as one of those
  /// that the runtime had before. True: its cgroup may have other CPUs than it is to have.
  virtual bool adopt(const Described& container) = 0;
  /// Containers and pods that these events end are forgotten.
  virtual void forget(const std::vector<policy::ledger::Event>& events) = 0;

  /// Sets of containers that the runtime does not have as they are to be, narrower ones first. They
  /// count as written.
  virtual Updates updates() = 0;
  /// Puts allocations in place of what the runtime reports, and adds what has changed for others
  /// and who owns which CPU.
  virtual void complete(std::vector<policy::ledger::Event>& events) = 0;
  /// The runtime of the connection that has just begun; null: it ended, or the runtime cannot be
  /// asked. It outlives the allocator or is replaced by null before.
  virtual void set_updater(Updater* updater) { (void)updater; }
  /// Brings changes about that no answer to the runtime can carry.
  virtual void apply() = 0;
  /// The same at once: the runtime waits for an answer, and would do later what it is asked for.
  virtual void apply_at_once() = 0;
};

}  // namespace ka::nri
