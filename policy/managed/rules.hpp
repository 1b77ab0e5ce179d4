// SPDX-License-Identifier: Apache-2.0
// Which class a container gets on a node whose CPUs we hand out: by what its pod asks for, where
// the node allows that, else by its namespace, else by its quality of service.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "policy/allocate/holdings.hpp"
#include "policy/allocate/options.hpp"
#include "policy/allocate/request.hpp"
#include "policy/facts/expected.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::policy::managed {

using allocate::CpuUse;

/// "none", "exclusive", "share": the values of Crane's annotation.
std::string_view class_name(CpuUse use);
std::optional<CpuUse> parse_class(std::string_view name);

/// The annotations by which a pod asks for the class of a container: the first of them counts.
std::vector<std::string> class_annotations(std::string_view container);
/// Whether a pod's annotation is one of those, for some container.
bool is_class_annotation(std::string_view key);

/// What an operator configured: [affinity.managed].
struct Rules {
  CpuSet exclusive;    ///< may be given to one container alone; empty: all but reserved and infra
  CpuSet reserved;     ///< never given to one container alone: always part of the shared pool
  CpuSet infra;        ///< for containers of infra_namespaces alone; empty: there is no such pool
  int min_shared = 1;  ///< so many CPUs at least always stay in the shared pool
  std::string placement = "fitted";  ///< a built-in policy of policy/allocate
  std::vector<std::string> steps;    ///< its steps in place of those of `placement`; empty: those
  allocate::OptionSet options;
  allocate::HintPolicy align = allocate::HintPolicy::kNone;  ///< with memory and devices, by nodes
  bool align_pods = false;   ///< one set of nodes for all containers of a pod
  bool bind_memory = false;  ///< memory comes from the nodes of the CPUs, where they have room
  std::set<std::string> infra_namespaces;
  std::map<std::string, CpuUse> by_namespace;
  CpuUse guaranteed = CpuUse::kExclusive;  ///< of containers with whole CPUs in Guaranteed pods
  std::set<CpuUse> allowed;                ///< what pods may choose
  bool refuse = false;  ///< a container that cannot have its class is not created

  bool operator==(const Rules&) const = default;
};

/// A container as its runtime describes it.
struct Candidate {
  std::string sandbox;
  std::string id;
  std::string pod_uid;
  std::string pod_name;  ///< "namespace/name"
  std::string name;
  bool guaranteed = false;  ///< its pod's quality of service
  /// The class that its pod asks for, as it is written there.
  std::optional<std::string> requested;
  std::int64_t quota = 0;   ///< CFS quota in microseconds a period; 0 or below: none
  std::int64_t period = 0;  ///< CFS period in microseconds
  std::string cgroup;       ///< as its runtime names it; empty: not known

  bool operator==(const Candidate&) const = default;
};

/// Why a container does not have the class that was asked for.
struct Problem {
  enum class Kind {
    kUnknownClass,         ///< the annotation names none
    kNotAllowed,           ///< the node's configuration does not let pods choose it
    kNoLimit,              ///< it has no CPU limit
    kNotWhole,             ///< its CPU limit is not a number of whole CPUs
    kNotEnough,            ///< fewer CPUs are free
    kNotWholeCores,        ///< full-pcpus-only: not a multiple of a core's threads
    kNotEnoughWholeCores,  ///< full-pcpus-only: fewer CPUs are free on whole cores
    kNotAligned,           ///< no NUMA nodes have its CPUs, memory and devices as `align` asks
    kOffline,              ///< CPUs that it owned went offline
    kInfra,                ///< its namespace runs on the infra pool
  };
  Kind kind = Kind::kNotEnough;
  int requested = 0;  ///< CPUs, where it is about their number
  int available = 0;

  bool operator==(const Problem&) const = default;
};

/// "not-enough", ...: stable names for machines.
std::string_view problem_name(Problem::Kind kind);
std::optional<Problem::Kind> parse_problem(std::string_view name);
Problem to_problem(const allocate::Refusal& refusal);

/// The whole CPUs of a container's limit; the error says why there is no such number.
Expected<int, Problem> whole_cpus(std::int64_t quota, std::int64_t period);

/// What a container is to get, before anyone looks whether there is room.
struct Verdict {
  CpuUse use = CpuUse::kNone;
  int cpus = 0;  ///< for kExclusive and kShare
  bool infra = false;
  std::optional<Problem> problem;  ///< `use` is kNone because of it

  bool operator==(const Verdict&) const = default;
};

Verdict classify(const Candidate& candidate, const Rules& rules);

}  // namespace ka::policy::managed
