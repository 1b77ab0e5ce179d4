// SPDX-License-Identifier: Apache-2.0
// VMMs that sources report of a pod, and that are not recorded as its: another pod has the VM, or
// the pod's own has ended and this is another process.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "policy/facts/process_id.hpp"
#include "policy/ledger/event.hpp"

namespace ka::registry {

class RefusedVmms {
 public:
  using Texts = std::map<std::string, std::string>;

  /// False: the same was refused before, for the same reason.
  bool refuse(const std::string& pod, const std::string& text);
  /// A refused report may come true: the pod is to have the VM when no other has it.
  void keep_claim(policy::ledger::Source source, const policy::ledger::PodSeen& seen);

  /// Forgets what was refused of a pod that has a VM by this event, or is gone.
  void update(const policy::ledger::Event& event);
  /// What has ended is nobody's.
  void vmm_ended(const policy::ProcessId& vmm);
  /// The claims to VMs that no other pod has any more, each once.
  std::vector<policy::ledger::Event> remove_due(
      const std::function<bool(const policy::ledger::PodSeen&)>& is_anothers);

  /// Why, by pod.
  const Texts& texts() const { return texts_; }

 private:
  struct Claim {
    policy::ledger::Source source{};
    policy::ledger::PodSeen seen;
  };

  void forget(const std::string& pod);

  Texts texts_;
  std::map<std::string, Claim> claims_;  ///< by pod
};

}  // namespace ka::registry
