// SPDX-License-Identifier: Apache-2.0
// What each vCPU of a sandbox, and the sandbox as a whole, gets of the resource classes that its
// containers ask for. Pure, as plan() is.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/io_limits.hpp"
#include "policy/facts/rdt.hpp"
#include "policy/facts/resource_class.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/plan/plan.hpp"

namespace ka::policy::plan {

/// A class as the configuration defines it; what is absent stays as it is.
struct ResourceClass {
  std::optional<int> nice;       ///< -20 to 19
  std::optional<int> io_weight;  ///< 1 to 10000; 100 is the kernel's default
  IoLimits io_max = {};          ///< empty: none are set
  RdtShares rdt = {};

  bool operator==(const ResourceClass&) const = default;
};

struct ResourceClasses {
  std::map<std::string, ResourceClass, std::less<>> by_name;
  std::set<ClassKind> by_annotation;  ///< kinds that pods may choose

  bool operator==(const ResourceClasses&) const = default;
};

/// Why a container does not have the class that its pod asks for.
enum class ClassRefusal {
  kNotAllowed,  ///< allow_annotations does not list the kind
  kUnknown,     ///< no such class is configured
  kNoValue,     ///< the class says nothing of this kind
  kShared,      ///< its vCPUs also run containers that have another value, or none
};

inline constexpr ClassRefusal kClassRefusals[] = {ClassRefusal::kNotAllowed, ClassRefusal::kUnknown,
                                                  ClassRefusal::kNoValue, ClassRefusal::kShared};

/// "not-allowed", "unknown", ...: stable names for machines.
std::string_view refusal_name(ClassRefusal refusal);

/// A class that a pod requests for one of its containers, or that its grade brings.
struct RequestedClass {
  std::string container;  ///< id
  ClassKind kind = ClassKind::kScheduling;
  std::string name;
  std::optional<ClassRefusal> refusal;  ///< absent: the container has it

  bool operator==(const RequestedClass&) const = default;
};

struct ClassPlan {
  std::map<int, int> nice;               ///< by vCPU index; others are left alone
  std::optional<int> io_weight;          ///< of the sandbox's cgroup; absent: left alone
  IoLimits io_max = {};                  ///< the same; disks that are not named are left alone
  std::map<int, std::string> rdt = {};   ///< names of classes by vCPU index; others are left alone
  std::vector<RequestedClass> requests;  ///< by container and kind

  bool operator==(const ClassPlan&) const = default;
};

/// A vCPU gets the nice value and the RDT class on which all containers that run on it agree, and
/// the sandbox's cgroup, which does the I/O of all, what of it all agree on: a container is
/// given nothing at another one's cost. Containers that have exited have no say. `own_rdt`: the
/// class of exclusive containers that request none; empty: none.
ClassPlan plan_classes(const SandboxPlan& plan, const std::vector<ContainerFacts>& containers,
                       const Annotations& annotations, const ResourceClasses& classes,
                       const std::string& own_rdt = {});

}  // namespace ka::policy::plan
