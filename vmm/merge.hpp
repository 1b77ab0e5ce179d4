// SPDX-License-Identifier: Apache-2.0
// Merges the claims of all backends: the first claim wins, later ones fill in what is
// missing, and contradictions are named and dropped.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/backend.hpp"

namespace ka::vmm {

class Merge {
 public:
  /// `threads`: the VMM's. A claim about any other is a contradiction.
  explicit Merge(const std::vector<SeenThread>& threads);

  /// Takes the claims of one backend. Backends come in the order of trust.
  void add(const Claims& claims);

  /// Gives each vCPU without an index its APIC id as one, or, where that is taken, the lowest free
  /// one. QEMU's own index is the same for the topologies that Kata gives a VM of one NUMA node,
  /// and what matters more: it stays when a vCPU is plugged below others, as Kata does it (highest
  /// first).
  void complete_indices();

  /// The claim on a thread; null if no backend claims it.
  const Claim* find(int tid) const;

  const std::vector<std::string>& conflicts() const { return conflicts_; }
  /// See VmmThreads::vcpu_source.
  std::string vcpu_source() const;

 private:
  struct Known {
    Claim claim;
    std::string role_source;
    std::string index_source;
    std::string apic_source;
  };

  std::optional<std::string> contradiction(const Claim& claim) const;
  std::optional<std::string> contradiction(const Claim& claim, const Known& known) const;
  void fill(Known& known, const Claim& claim, const std::string& source);
  int free_index(int wanted) const;

  std::set<int> tids_;
  std::map<int, Known> by_tid_;
  std::vector<std::string> conflicts_;
};

}  // namespace ka::vmm
