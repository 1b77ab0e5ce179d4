// SPDX-License-Identifier: Apache-2.0
// A request for CPUs, its answer, and the trace of how the one became the other.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/allocate/options.hpp"

namespace ka::policy::allocate {

/// The newest kubelet, 1.N, whose answers are given where versions differ.
inline constexpr int kNewestKubelet = 37;

struct CpuRequest {
  int cpus = 0;      ///< how many the container is to have in all
  CpuSet available;  ///< kubelet's shared pool; what is reserved or offline in it is left out
  CpuSet reserved;   ///< never handed out
  OptionSet options;
  /// The nodes that the merged topology hint names: their CPUs are taken first.
  std::optional<NodeSet> numa_affinity;
  /// With distribute-cpus-across-numa: CPUs are split in multiples of this, 1 or more. With
  /// full-pcpus-only it is the threads of a core.
  int group_size = 1;
  /// N of kubelet 1.N. Until 1.36 align-by-socket does not change how CPUs are distributed.
  int kubelet = kNewestKubelet;
  CpuClass cpu_class = CpuClass::kAny;
  /// CPUs under isolcpus and nohz_full first.
  bool prefer_isolated = false;
  /// Resize in place: what the container has. Growing keeps all of it.
  CpuSet held;
  /// What it was admitted with: shrinking gives these back last.
  CpuSet promised;
  bool explain = false;  ///< fill the trace
};

/// Why a request was refused.
struct Refusal {
  enum class Reason {
    kNotEnough,            ///< fewer CPUs than asked for
    kNotWholeCores,        ///< full-pcpus-only: not a multiple of a core's threads
    kNotEnoughWholeCores,  ///< full-pcpus-only: fewer CPUs on whole cores than asked for
    kNothingLeft,          ///< containers that share would be left without a CPU
    kUnknown,              ///< no such container or pod
    kDuplicate,            ///< a container or pod with that id is there already
    kNotAligned,           ///< the topology manager's policy does not admit the merged hint
  };
  Reason reason = Reason::kNotEnough;
  int requested = 0;
  int available = 0;
  int per_core = 0;

  bool operator==(const Refusal&) const = default;
};

/// The refusal with kubelet's message (cpu_assignment.go, SMTAlignmentError of policy_static.go).
std::string refusal_text(const Refusal& refusal);

/// The steps of the pipeline, in the order in which they run. Select, Score and Allocate run once
/// a stage.
enum class Phase {
  kSort,        ///< decides what is taken first: the order of the stages
  kFilter,      ///< takes CPUs out of the pools, or puts some of them before the others
  kPostFilter,  ///< the first pool is too small: goes on to the next, or refuses
  kPreScore,    ///< computes what the later steps share: the free CPUs of each group
  kSelect,      ///< lists the stage's candidates
  kScore,       ///< adds to the candidates' scores; the lowest is taken first
  kAllocate,    ///< takes candidates
  kDeallocate,  ///< shrinking: decides which CPUs are kept
};

/// "Sort", "Filter", "PostFilter", ...
std::string_view phase_name(Phase phase);

/// What is taken from: coarsest first.
enum class Stage { kSplits, kSockets, kNodes, kL3s, kPartOfL3, kCores, kCpus };

/// "node splits", "sockets", "nodes", "L3 caches", "part of an L3 cache", "cores", "CPUs".
std::string_view stage_name(Stage stage);

/// So many CPUs from one node. The node is the machine's group number.
struct Share {
  int node = 0;
  int cpus = 0;

  bool operator==(const Share&) const = default;
};

/// Something that may be taken as a whole.
struct Candidate {
  CpuSet cpus;
  std::vector<Share> shares;  ///< of a split across nodes, in place of `cpus`
  double score = 0;           ///< the lowest is taken first; among equals the one listed first
};

/// What a step did.
struct Finding {
  enum class What {
    kOrdered,    ///< it put `stage` into the order
    kRemoved,    ///< it took `cpus` out
    kPreferred,  ///< it put `cpus` before the others
    kSpilled,    ///< `cpus` were fewer than needed: all were taken, the search went on elsewhere
    kKept,       ///< it kept `cpus`
    kListed,     ///< it listed `number` candidates
    kScored,     ///< it gave the candidate `cpus` or `shares` its `score`
    kChosen,     ///< it took the candidate `cpus` with `score`
  };
  Phase phase = Phase::kSort;
  std::string step;
  What what = What::kOrdered;
  Stage stage = Stage::kCpus;
  CpuSet cpus;
  std::vector<Share> shares;
  int number = 0;
  double score = 0;
};

struct CpuAllocation {
  CpuSet cpus;  ///< all that the container has now
  std::vector<Finding> trace;
};

}  // namespace ka::policy::allocate
