// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/resource_classes.hpp"

#include <algorithm>
#include <utility>

namespace ka::policy::plan {
namespace {

using Value = std::optional<int>;

/// What a container is to have of one kind.
struct Share {
  const ContainerFacts* container;
  VcpuSet vcpus;
  Value value;
};

Value value_of(const ResourceClass& given, ClassKind kind) {
  return kind == ClassKind::kScheduling ? given.nice : given.io_weight;
}

std::optional<ClassRefusal> refusal_of(const std::string& name, ClassKind kind,
                                       const ResourceClasses& classes) {
  if (!classes.by_annotation.contains(kind)) return ClassRefusal::kNotAllowed;
  const auto found = classes.by_name.find(name);
  if (found == classes.by_name.end()) return ClassRefusal::kUnknown;
  if (!value_of(found->second, kind)) return ClassRefusal::kNoValue;
  return std::nullopt;
}

VcpuSet vcpus_of(const SandboxPlan& plan, const std::string& container) {
  const auto found = std::ranges::find(plan.containers, container, &ContainerPlan::id);
  return found == plan.containers.end() ? VcpuSet{} : found->vcpus;
}

/// Asks for one kind, container by container.
class Kind {
 public:
  Kind(ClassKind kind, const ResourceClasses& classes) : kind_(kind), classes_(classes) {}

  void add(const ContainerFacts& container, VcpuSet vcpus, const ClassAnnotations& annotations) {
    Share share{&container, std::move(vcpus), {}};
    if (auto name = requested_class_of(annotations, kind_, container.name)) {
      const auto refusal = refusal_of(*name, kind_, classes_);
      if (!refusal) share.value = value_of(classes_.by_name.find(*name)->second, kind_);
      requests_.push_back({container.id, kind_, std::move(*name), refusal});
    }
    shares_.push_back(std::move(share));
  }

  /// The value on which all containers agree that `concerns`; absent: they do not, or there is
  /// none.
  template <typename Concerns>
  Value agreed(const Concerns& concerns) const {
    Value value;
    bool is_first = true;
    for (const Share& share : shares_) {
      if (!concerns(share)) continue;
      if (!is_first && share.value != value) return std::nullopt;
      value = share.value;
      is_first = false;
    }
    return value;
  }

  const std::vector<Share>& shares() const { return shares_; }

  void refuse(const std::string& container, ClassRefusal why) {
    const auto found = std::ranges::find(requests_, container, &RequestedClass::container);
    if (found != requests_.end() && !found->refusal) found->refusal = why;
  }

  std::vector<RequestedClass> release() { return std::move(requests_); }

 private:
  ClassKind kind_;
  const ResourceClasses& classes_;
  std::vector<Share> shares_;
  std::vector<RequestedClass> requests_;
};

/// A container without vCPUs of its own has nothing that could have the value.
std::map<int, int> nice_of_vcpus(const SandboxPlan& plan, Kind& scheduling) {
  std::map<int, int> nice;
  for (const VcpuPlan& vcpu : plan.vcpus) {
    const int index = vcpu.index;
    const auto value =
        scheduling.agreed([index](const Share& share) { return share.vcpus.contains(index); });
    if (value) nice[index] = *value;
  }
  for (const Share& share : scheduling.shares()) {
    const bool has_all =
        !share.vcpus.empty() &&
        std::ranges::all_of(share.vcpus, [&nice](int vcpu) { return nice.contains(vcpu); });
    if (!has_all) scheduling.refuse(share.container->id, ClassRefusal::kShared);
  }
  return nice;
}

Value weight_of_sandbox(Kind& block_io) {
  const auto weight = block_io.agreed([](const Share&) { return true; });
  for (const Share& share : block_io.shares()) {
    if (!weight) block_io.refuse(share.container->id, ClassRefusal::kShared);
  }
  return weight;
}

}  // namespace

std::string_view refusal_name(ClassRefusal refusal) {
  switch (refusal) {
    case ClassRefusal::kNotAllowed:
      return "not-allowed";
    case ClassRefusal::kUnknown:
      return "unknown";
    case ClassRefusal::kNoValue:
      return "no-value";
    case ClassRefusal::kShared:
      break;
  }
  return "shared";
}

ClassPlan plan_classes(const SandboxPlan& plan, const std::vector<ContainerFacts>& containers,
                       const ClassAnnotations& annotations, const ResourceClasses& classes) {
  if (annotations.empty()) return {};
  Kind scheduling(ClassKind::kScheduling, classes);
  Kind block_io(ClassKind::kBlockIo, classes);
  for (const ContainerFacts& container : containers) {
    if (container.exited) continue;
    scheduling.add(container, vcpus_of(plan, container.id), annotations);
    block_io.add(container, {}, annotations);
  }
  ClassPlan result{.nice = nice_of_vcpus(plan, scheduling),
                   .io_weight = weight_of_sandbox(block_io),
                   .requests = scheduling.release()};
  for (RequestedClass& request : block_io.release()) result.requests.push_back(std::move(request));
  std::ranges::stable_sort(result.requests, {}, &RequestedClass::container);
  return result;
}

}  // namespace ka::policy::plan
