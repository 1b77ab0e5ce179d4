// SPDX-License-Identifier: Apache-2.0
// Resource classes: what a container's vCPUs and its sandbox get beside CPUs. Operators define
// them, and a pod asks for one by annotation, with the keys and scopes of nri-plugins
// (pkg/resmgr/cache: GetEffectiveAnnotation; topology-aware: SchedulingClassKey).
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "policy/facts/annotations.hpp"

namespace ka::policy {

/// What a class decides. Each has an annotation of its own, so that a container may have classes of
/// different names.
enum class ClassKind {
  kScheduling,  ///< nice of its vCPUs' threads
  kBlockIo,     ///< weight and limits of the sandbox's block I/O
  kRdt,         ///< caches and memory bandwidth of its vCPUs' threads
};

struct ClassKindInfo {
  ClassKind kind;
  std::string_view name;        ///< in allow_annotations, JSON and messages
  std::string_view annotation;  ///< for all containers of the pod; also with a scope (below)
};

/// In the order of the enum.
inline constexpr ClassKindInfo kClassKinds[] = {
    {ClassKind::kScheduling, "scheduling-class", "scheduling-class.resource-policy.nri.io"},
    {ClassKind::kBlockIo, "blockioclass", "blockioclass.resource-policy.nri.io"},
    {ClassKind::kRdt, "rdtclass", "rdtclass.resource-policy.nri.io"},
};

static_assert(std::ranges::all_of(kClassKinds, [](const ClassKindInfo& info) {
  return &info == &kClassKinds[static_cast<std::size_t>(info.kind)];
}));

constexpr const ClassKindInfo& info_of(ClassKind kind) {
  return kClassKinds[static_cast<std::size_t>(kind)];
}

/// Whether a pod's annotation asks for a class of some kind.
bool is_class_request(std::string_view annotation);
/// Whether one of them does.
bool requests_classes(const Annotations& annotations);

/// The class that a pod asks for, for one of its containers (by its name): what
/// KEY/container.NAME says, else KEY/pod, else KEY.
std::optional<std::string> requested_class_of(const Annotations& annotations, ClassKind kind,
                                              std::string_view container);

}  // namespace ka::policy
