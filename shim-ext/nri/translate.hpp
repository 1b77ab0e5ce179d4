// SPDX-License-Identifier: Apache-2.0
// From NRI's pods and containers to the ledger's events.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/log/log.hpp"
#include "base/result.hpp"
#include "policy/ledger/event.hpp"
#include "shim-ext/nri/allocator.hpp"

namespace ka::proto::nri {
class Container;
class LinuxResources;
class PodSandbox;
}  // namespace ka::proto::nri

namespace ka::nri {

/// What a process currently is.
struct Process {
  bool is_vmm = false;
  policy::ProcessId id;
};

/// The owner of the process that the runtime names.
enum class Origin {
  kPod,        ///< the pod's own
  kContainer,  ///< one of its containers', or of a runtime that is known to run no VMs
};

/// Probes a process; kGone when there is none.
using Probe = std::function<base::Result<Process>(int pid, Origin origin)>;

/// Tells VM sandboxes from other pods by the process that the runtime names, and remembers the
/// answer: the handler's name alone proves nothing.
class Translator {
 public:
  /// `log` and `clock` must outlive it.
  Translator(Probe probe, const log::Log& log, const base::Clock& clock);

  /// A pod, with its VMM where it has one. A pod that has just been reported the same way yields
  /// nothing. `pid` is the pod's, or where the runtime does not report it a container's: Kata's
  /// runtimes give the VMM's for every task. `afresh`: it may be another program by now (a runtime
  /// reports a pod whose process it has made and not yet started).
  std::optional<policy::ledger::Event> pod(const proto::nri::PodSandbox& pod, int pid,
                                           bool afresh = false);

  /// Whether the ids of a container and its pod are ids. One that has none is logged.
  bool is_named(const proto::nri::Container& container) const;

  /// A container's spec. An empty set of CPUs or nodes means "unchanged": it is not reported.
  policy::ledger::Event container(const proto::nri::Container& container) const;

  /// An update: only what it changes. A value of 0 is how the CRI leaves one as it is.
  policy::ledger::Event updated(const proto::nri::Container& container,
                                const proto::nri::LinuxResources& resources) const;

  /// A container as one who gives it its CPUs needs to see it.
  Described described(const proto::nri::PodSandbox& pod,
                      const proto::nri::Container& container) const;
  /// The same where its pod was reported before, or will be: complete() adds what is known of that.
  /// What the pod asks for is not part of it.
  Described described(const proto::nri::Container& container) const;
  void complete(Described& described) const;

  /// The value of a pod's annotation kata-affinity.io/environment; absent: missing or not
  /// a boolean.
  std::optional<bool> wants_environment(const proto::nri::PodSandbox& pod) const;

  /// Probes the processes of pods that are no VM sandboxes: one that ended without an event
  /// ends its pod (a runtime does not report the end of pods that are older than its last
  /// restart), one that has become a VMM makes it a sandbox. Probes those again that could not be
  /// seen. Returns these changes as events.
  std::vector<policy::ledger::Event> poll();

  /// Pods whose process could not be probed, by id, and why: whether they have a VM is not known.
  const std::map<std::string, std::string>& unseen() const { return unseen_; }

  void forget(const std::string& pod);
  void forget_all();

 private:
  struct Pod {
    int pid = 0;  ///< as the runtime named it
    Process process;
    bool is_pods_own = false;  ///< not that of one of its containers
    Origin origin = Origin::kContainer;
    std::string uid;
    std::string name;
    std::string cgroup;                ///< that its containers' lie in
    std::chrono::nanoseconds named{};  ///< since boot: when `pid` was named and could not be seen
  };

  base::Result<Process> probe_twice(int pid, Origin origin) const;
  bool probe(const std::string& id, Pod& known, int pid, bool afresh);
  void record_unseen(const std::string& id, Pod& known, const std::string& why);
  bool is_outside_vm(const std::string& pod) const;
  bool is_polled(const std::string& id, const Pod& known) const;
  std::optional<policy::ledger::EventBody> poll(const std::string& id, Pod& known);
  std::optional<policy::ledger::EventBody> poll_unseen(const std::string& id, Pod& known);
  static std::optional<policy::ledger::EventBody> became_vmm(const std::string& id, Pod& known,
                                                             const Process& process);
  policy::ledger::ContainerSeen seen(const proto::nri::Container& container,
                                     policy::ledger::ContainerSpec spec) const;
  policy::ledger::ContainerSpec whole(const proto::nri::Container& container) const;
  policy::ledger::ContainerSpec changes(const proto::nri::LinuxResources& resources,
                                        const std::string& container) const;

  Probe probe_;
  const log::Log& log_;
  const base::Clock& clock_;
  std::map<std::string, Pod> pods_;
  std::map<std::string, std::string> unseen_;
};

}  // namespace ka::nri
