// SPDX-License-Identifier: Apache-2.0
// Which container holds which CPUs: the state of a node whose CPUs we allocate ourselves.
// Containers start, end, and change size or class while they run; what one operation changes for
// others is in its answer, so that their cgroups can be rewritten.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/allocate/allocate.hpp"
#include "policy/allocate/hints.hpp"

namespace ka::policy::allocate {

/// The classes of Crane's cpuset manager.
enum class CpuUse {
  kExclusive,  ///< CPUs of its own, which no other container may use
  kShare,      ///< bound to CPUs that others may use as well
  kNone,       ///< runs anywhere in the shared pool
};

struct HoldingRequest {
  CpuUse use = CpuUse::kNone;
  int cpus = 0;  ///< for kExclusive and kShare
  CpuClass cpu_class = CpuClass::kAny;
  bool prefer_isolated = false;  ///< for kExclusive: the scheduler does not balance over such CPUs
  std::optional<NodeSet> numa_affinity;

  bool operator==(const HoldingRequest&) const = default;
};

/// What a container is to its pod. Init containers run one after the other, before the apps; what
/// they had is free for the pod's later containers.
enum class PodPart {
  kInit,
  kSidecar,  ///< a restartable init container: it keeps running, so its CPUs are its own
  kApp,
};

/// "init", "sidecar", "app".
std::optional<PodPart> parse_pod_part(std::string_view name);

struct PodContainer {
  std::string name;
  PodPart part = PodPart::kApp;
  HoldingRequest request;
};

/// kubelet's topology manager, with the CPUs as the only resource.
struct Alignment {
  HintPolicy policy = HintPolicy::kNone;
  bool pod_scope = false;  ///< one set of nodes for all containers of a pod
};

struct Holding {
  HoldingRequest request;
  CpuSet cpus;      ///< empty for kNone
  CpuSet promised;  ///< what it was admitted with, as far as it still holds it
  std::string pod;  ///< empty for a container that was added alone
  PodPart part = PodPart::kApp;

  bool operator==(const Holding&) const = default;
};

/// The containers whose CPUs an operation changed, that of the operation included, sorted. When
/// the shared pool changed, containers of class none moved with it and are listed too.
using Moved = std::vector<std::string>;

class Holdings {
 public:
  /// `machine` must outlive this. The options must have passed refused_options().
  Holdings(const Machine& machine, CpuSet reserved, OptionSet options);
  /// With another policy than the options ask for.
  Holdings(const Machine& machine, CpuSet reserved, OptionSet options, Pipeline policy,
           Alignment alignment = {});

  /// Restores what all() returned before a restart, into empty books. The error says why that
  /// cannot be: a CPU with two owners, one that is reserved, one that the machine does not have.
  std::optional<std::string> restore(std::map<std::string, Holding> holdings);

  // Every operation that refuses leaves the books as they were.

  /// Admits a pod as kubelet does: init containers and sidecars first, in their order, then the
  /// apps; all of them or none. Its containers are held as "POD/NAME". Init containers keep their
  /// CPUs until end_inits() or remove_pod(), also those that later containers of the pod share.
  Expected<Moved, Refusal> add_pod(const std::string& pod,
                                   std::span<const PodContainer> containers);
  /// The pod's init containers have ended: what none of its other containers took over is free
  /// (kubelet keeps it until the pod ends, kubernetes#112228).
  Expected<Moved, Refusal> end_inits(const std::string& pod);
  Expected<Moved, Refusal> remove_pod(const std::string& pod);

  /// CPUs of `preferred` come first, where they are free.
  Expected<Moved, Refusal> add(const std::string& id, const HoldingRequest& request,
                               const CpuSet& preferred = {});
  Expected<Moved, Refusal> remove(const std::string& id);
  /// Growing keeps every CPU that the container has; shrinking keeps those it was admitted with
  /// before any other. Nothing happens to a container of class none.
  Expected<Moved, Refusal> resize(const std::string& id, int cpus);
  /// Changes class or size of a running container. It keeps the CPUs it has where the new class
  /// allows.
  Expected<Moved, Refusal> change(const std::string& id, const HoldingRequest& request);

  const std::map<std::string, Holding>& all() const { return holdings_; }
  /// Where a container may run; empty for an unknown one.
  CpuSet cpus_of(const std::string& id) const;
  const CpuSet& exclusive() const { return exclusive_; }
  /// The online CPUs that no container holds exclusively; with strict-cpu-reservation without the
  /// reserved ones.
  CpuSet shared_pool() const;

 private:
  struct Liked {
    CpuSet reusable;   ///< free for this container alone
    CpuSet preferred;  ///< taken first, where free
  };
  Expected<CpuSet, Refusal> choose(const HoldingRequest& request, const Holding& before, bool keep,
                                   const Liked& liked = {}) const;
  /// Of the CPUs that a pod's init containers have left, and the hint for all of it.
  struct Admission;
  std::optional<Refusal> place(const PodContainer& container, Admission& admission);
  std::optional<Refusal> align(int cpus, Admission& admission) const;
  /// Removes what `gone` says of a pod's containers; false when it had none.
  template <typename Gone>
  bool drop(const std::string& pod, const Gone& gone);
  Expected<Moved, Refusal> commit(Holdings next);
  Pipeline pipeline_for(CpuUse use, const CpuSet& liked) const;
  std::optional<Refusal> put(const std::string& id, Holding holding);
  /// Brings `exclusive_` and the sharers up to date after a change.
  void update();
  void move_sharer(Holding& holding, const CpuSet& pool) const;
  CpuSet bound() const;

  const Machine* machine_;
  CpuSet reserved_;
  OptionSet options_;
  Pipeline policy_;
  Alignment alignment_;
  std::map<std::string, Holding> holdings_;
  CpuSet exclusive_;
};

}  // namespace ka::policy::allocate
