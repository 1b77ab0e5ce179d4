// SPDX-License-Identifier: Apache-2.0
// Sandboxes that are libvirt domains: the sandbox of each domain, and libvirt's record
// of its pins.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/id_set.hpp"
#include "policy/facts/memory.hpp"
#include "policy/plan/memory.hpp"
#include "policy/plan/plan.hpp"

namespace ka::policy::plan {

/// Of a pod, what concerns domains.
struct DomainPod {
  std::string id;
  std::string domain;     ///< that it is known to be; may be empty
  std::string requested;  ///< named by the pod's annotation; may be empty
  bool has_vm = false;
};

struct DomainRules {
  std::vector<std::string> configured;  ///< domains that are sandboxes under their own names
  bool by_annotation = false;           ///< a pod may name its domain itself
};

/// Sandboxes by the domains that they are.
using DomainOwners = std::map<std::string, std::string, std::less<>>;

/// Each domain is one sandbox: the one that runs it already; else, for a configured domain, the one
/// of its name; else the first that is known to be it; else the first that names it itself and has
/// no VM of its own. `pods` by ascending id.
DomainOwners find_domain_owners(const std::vector<DomainPod>& pods, const DomainRules& rules);

/// Why a pod is not the domain that it names.
enum class DomainRefusal {
  kNotAllowed,  ///< pods may not name their domain
  kOwnVm,       ///< it has a VM of its own
  kTaken,       ///< the domain is another sandbox
};

/// Absent: it is the domain that it names, or names none.
std::optional<DomainRefusal> domain_refusal(const DomainPod& pod, const DomainRules& rules,
                                            const DomainOwners& owners);

/// CPUs by libvirt's numbers. What is not named is left as it is.
struct DomainPins {
  std::map<int, CpuSet> vcpus;
  CpuSet emulator;  ///< empty: left as it is
  std::map<int, CpuSet> iothreads;

  bool operator==(const DomainPins&) const = default;
};

/// What libvirt is to record for a plan. Domains call their iothreads "iothreadN".
DomainPins domain_pins(const SandboxPlan& plan);

/// The memory nodes of a domain.
struct DomainMemory {
  NodeSet nodes;
  /// The memory lies there: what libvirt allows may shrink to these nodes. Before, it only grows.
  bool arrived = false;

  bool operator==(const DomainMemory&) const = default;
};

/// Where a sandbox's memory lies, and whether it is being moved.
struct MemoryPlace {
  const MemoryFacts& facts;
  const MemoryPlan& plan;
  bool moving = false;
};

/// On which nodes libvirt is to let a domain's memory be, whose memory follows its plan: `mems`,
/// the plan's nodes. `place` is absent until the memory was read. Absent: libvirt's record is left
/// as it is.
std::optional<DomainMemory> domain_memory(const NodeSet& mems,
                                          const std::optional<MemoryPlace>& place);

}  // namespace ka::policy::plan
