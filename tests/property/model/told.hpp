// SPDX-License-Identifier: Apache-2.0
// The reference: what a daemon has been told, folded by the plainest rules that docs/sources.md
// allows, and what follows from it: who owns which CPU, and whether that is known at all. It shares
// no code with the ledger, the gate or the plan.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policy/ledger/event.hpp"

namespace ka::model {

struct ToldContainer {
  policy::ContainerFacts facts;
  std::optional<bool> owned_before;  ///< a restart: what was known then

  bool operator==(const ToldContainer&) const = default;
};

struct ToldPod {
  std::string uid;
  std::optional<policy::ProcessId> vmm;
  std::map<std::string, ToldContainer> containers;
  /// Whether the daemon still has it, or has it already, depends on where it was interrupted.
  bool unsure = false;
};

class Told {
 public:
  /// The sources that the node has.
  explicit Told(std::set<policy::ledger::Source> sources) : sources_(std::move(sources)) {}

  void hear(const policy::ledger::Event& event);
  void spoke(policy::ledger::Source source);
  void time_is_up();
  void dismiss();

  /// A new daemon: it has the state files, without those of `damaged`.
  void restart(const std::set<std::string>& damaged);
  void forget(const std::string& pod) { pods_.erase(pod); }
  void doubt(const std::string& pod);

  /// A CPU may be given to threads that do not have it.
  bool owners_are_known();
  /// CPUs that others own.
  policy::CpuSet foreign_to(const std::string& pod) const;
  bool owns(const ToldPod& pod, const ToldContainer& container) const;

  const std::map<std::string, ToldPod>& pods() const { return pods_; }
  /// The pod, where it is certain that the daemon has it.
  const ToldPod* find(const std::string& id) const;

 private:
  bool is_listed(const ToldPod& pod, const std::string& container) const;
  bool is_shared(const ToldPod& pod, const policy::CpuSet& cpus) const;

  std::set<policy::ledger::Source> sources_, silent_, heard_;
  std::optional<std::vector<policy::ledger::Claim>> claims_;
  std::map<std::string, ToldPod> pods_;
  std::set<std::string> lost_, retold_;  ///< pods whose state is damaged; told of since
  bool expired_ = false, known_ = true;
};

}  // namespace ka::model
