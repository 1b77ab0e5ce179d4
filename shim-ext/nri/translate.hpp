// SPDX-License-Identifier: Apache-2.0
// From NRI's pods and containers to the ledger's events.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log/log.hpp"
#include "base/result.hpp"
#include "policy/ledger/event.hpp"

namespace ka::proto::nri {
class Container;
class LinuxResources;
class PodSandbox;
}  // namespace ka::proto::nri

namespace ka::nri {

/// What a process is at this moment.
struct Process {
  bool is_vmm = false;
  policy::ProcessId id;
};

/// Whose process the runtime names.
enum class Of {
  kPod,        ///< the pod's own
  kContainer,  ///< one of its containers', or of a runtime that is known to run no VMs
};

/// Looks at a process; kGone when there is none.
using Look = std::function<base::Result<Process>(int pid, Of of)>;

/// What is known of a container so far.
using Known =
    std::function<std::optional<policy::ContainerFacts>(std::string_view, std::string_view)>;

/// Tells VM sandboxes from other pods by the process that the runtime names, and remembers the
/// answer: the handler's name alone says nothing.
class Translator {
 public:
  /// `log` must outlive it.
  Translator(Look look, Known known, const log::Log& log);

  /// A pod, with its VMM where it has one. A pod that has just been told in the same words yields
  /// nothing. `pid` is the pod's, or where the runtime does not tell it a container's: Kata's
  /// runtimes give the VMM's for every task. `afresh`: it may be another program by now (a runtime
  /// tells of a pod whose process it has made and not yet started).
  std::optional<policy::ledger::Event> pod(const proto::nri::PodSandbox& pod, int pid,
                                           bool afresh = false);

  /// A container's spec. An empty set of CPUs or nodes means "unchanged": what is known stays.
  policy::ledger::Event container(const proto::nri::Container& container) const;

  /// The spec that an update makes: what is known, or else the old spec, with the new values in it.
  policy::ledger::Event updated(const proto::nri::Container& container,
                                const proto::nri::LinuxResources& resources) const;

  /// What a pod's annotation kata-affinity.io/environment says; absent: nothing that can be
  /// understood.
  std::optional<bool> wants_environment(const proto::nri::PodSandbox& pod) const;

  /// Looks again at the processes of pods that are no VM sandboxes: one that ended without a word
  /// ends its pod (a runtime does not tell of the end of pods that are older than its last
  /// restart), one that has become a VMM makes it a sandbox. What nobody told of is in the answer.
  std::vector<policy::ledger::Event> look_again();

  void forget(const std::string& pod);
  void forget_all();

 private:
  struct Verdict {
    int pid = 0;  ///< as the runtime named it
    Process process;
    bool is_pods_own = false;  ///< not that of one of its containers
    Of of = Of::kContainer;
    std::string uid;
  };

  bool judge(Verdict& verdict, int pid, bool afresh) const;
  std::optional<policy::ledger::EventBody> look_again(const std::string& id,
                                                      Verdict& verdict) const;
  policy::ledger::Event seen(const proto::nri::Container& container,
                             policy::ContainerFacts facts) const;
  void read(const proto::nri::LinuxResources& resources, policy::ContainerFacts& facts) const;

  Look look_;
  Known known_;
  const log::Log& log_;
  std::map<std::string, Verdict> pods_;
};

}  // namespace ka::nri
