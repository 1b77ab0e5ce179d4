// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/resource_classes.hpp"

#include <algorithm>
#include <utility>

namespace ka::policy::plan {
namespace {

/// What a container is to have of one kind.
template <typename Value>
struct Share {
  const ContainerFacts* container;
  VcpuSet vcpus;
  std::optional<Value> value;
};

// What a class gives of one kind.

std::optional<int> nice_of(const std::string& /*name*/, const ResourceClass& given) {
  return given.nice;
}
struct BlockIo {
  std::optional<int> weight;
  IoLimits limits;

  bool operator==(const BlockIo&) const = default;
};
std::optional<BlockIo> block_io_of(const std::string& /*name*/, const ResourceClass& given) {
  if (!given.io_weight && given.io_max.empty()) return std::nullopt;
  return BlockIo{given.io_weight, given.io_max};
}
/// A class is one group of the kernel's: those who agree have it by name.
std::optional<std::string> rdt_of(const std::string& name, const ResourceClass& given) {
  return given.rdt.empty() ? std::nullopt : std::optional(name);
}

VcpuSet vcpus_of(const SandboxPlan& plan, const std::string& container) {
  const auto found = std::ranges::find(plan.containers, container, &ContainerPlan::id);
  return found == plan.containers.end() ? VcpuSet{} : found->vcpus;
}

/// Asks for one kind, container by container.
template <typename Value>
class Kind {
 public:
  using ValueOf = std::optional<Value> (*)(const std::string& name, const ResourceClass& given);

  /// `own`: the class of exclusive containers that request none; empty: none.
  Kind(ClassKind kind, const ResourceClasses& classes, ValueOf value_of, std::string own = {})
      : kind_(kind), classes_(classes), value_of_(value_of), own_(std::move(own)) {}

  void add(const ContainerFacts& container, VcpuSet vcpus, const Annotations& annotations) {
    Share<Value> share{&container, std::move(vcpus), {}};
    if (auto name = requested_class_of(annotations, kind_, container.name)) {
      enter(share, std::move(*name), classes_.by_annotation.contains(kind_));
    } else if (container.exclusive && !own_.empty()) {
      enter(share, own_, true);
    }
    shares_.push_back(std::move(share));
  }

  /// The value on which all containers agree that `concerns`; absent: they do not, or there is
  /// none.
  template <typename Concerns>
  std::optional<Value> agreed(const Concerns& concerns) const {
    std::optional<Value> value;
    bool is_first = true;
    for (const Share<Value>& share : shares_) {
      if (!concerns(share)) continue;
      if (!is_first && share.value != value) return std::nullopt;
      value = share.value;
      is_first = false;
    }
    return value;
  }

  const std::vector<Share<Value>>& shares() const { return shares_; }

  void refuse(const std::string& container, ClassRefusal why) {
    const auto found = std::ranges::find(requests_, container, &RequestedClass::container);
    if (found != requests_.end() && !found->refusal) found->refusal = why;
  }

  void move_to(std::vector<RequestedClass>& requests) {
    for (RequestedClass& request : requests_) requests.push_back(std::move(request));
    requests_.clear();
  }

 private:
  void enter(Share<Value>& share, std::string name, bool is_allowed) {
    const auto value = is_allowed ? value_in(name) : unexpected(ClassRefusal::kNotAllowed);
    if (value) share.value = *value;
    requests_.push_back({share.container->id, kind_, std::move(name),
                         value ? std::nullopt : std::optional(value.error())});
  }

  Expected<Value, ClassRefusal> value_in(const std::string& name) const {
    const auto found = classes_.by_name.find(name);
    if (found == classes_.by_name.end()) return unexpected(ClassRefusal::kUnknown);
    auto value = value_of_(name, found->second);
    if (!value) return unexpected(ClassRefusal::kNoValue);
    return *std::move(value);
  }

  ClassKind kind_;
  const ResourceClasses& classes_;
  ValueOf value_of_;
  std::string own_;
  std::vector<Share<Value>> shares_;
  std::vector<RequestedClass> requests_;
};

/// A container without vCPUs of its own has nothing that could have the value.
template <typename Value>
std::map<int, Value> values_of_vcpus(const SandboxPlan& plan, Kind<Value>& kind) {
  std::map<int, Value> values;
  for (const VcpuPlan& vcpu : plan.vcpus) {
    const int index = vcpu.index;
    const auto value =
        kind.agreed([index](const Share<Value>& share) { return share.vcpus.contains(index); });
    if (value) values[index] = *value;
  }
  for (const Share<Value>& share : kind.shares()) {
    const bool has_all =
        !share.vcpus.empty() &&
        std::ranges::all_of(share.vcpus, [&values](int vcpu) { return values.contains(vcpu); });
    if (!has_all) kind.refuse(share.container->id, ClassRefusal::kShared);
  }
  return values;
}

BlockIo block_io_of_sandbox(Kind<BlockIo>& block_io) {
  const auto agreed = block_io.agreed([](const Share<BlockIo>&) { return true; });
  for (const Share<BlockIo>& share : block_io.shares()) {
    if (!agreed) block_io.refuse(share.container->id, ClassRefusal::kShared);
  }
  return agreed.value_or(BlockIo{});
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
                       const Annotations& annotations, const ResourceClasses& classes,
                       const std::string& own_rdt) {
  if (annotations.empty() && own_rdt.empty()) return {};
  Kind<int> scheduling(ClassKind::kScheduling, classes, nice_of);
  Kind<BlockIo> block_io(ClassKind::kBlockIo, classes, block_io_of);
  Kind<std::string> rdt(ClassKind::kRdt, classes, rdt_of, own_rdt);
  for (const ContainerFacts& container : containers) {
    if (container.exited) continue;
    scheduling.add(container, vcpus_of(plan, container.id), annotations);
    block_io.add(container, {}, annotations);
    rdt.add(container, vcpus_of(plan, container.id), annotations);
  }
  BlockIo agreed = block_io_of_sandbox(block_io);
  ClassPlan result{.nice = values_of_vcpus(plan, scheduling),
                   .io_weight = agreed.weight,
                   .io_max = std::move(agreed.limits),
                   .rdt = values_of_vcpus(plan, rdt),
                   .requests = {}};
  scheduling.move_to(result.requests);
  block_io.move_to(result.requests);
  rdt.move_to(result.requests);
  std::ranges::stable_sort(result.requests, {}, &RequestedClass::container);
  return result;
}

}  // namespace ka::policy::plan
