// SPDX-License-Identifier: Apache-2.0
// What a thread of a sandbox is for. A role is a value of the enum and a row of the table: plans,
// their checks, JSON, pins, metrics and text tables iterate over it
// (docs/develop/extending.md, "A role").
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

namespace ka::policy {

enum class Role {
  kVcpu,
  kEmulator,  ///< of the VMM, and none of the others
  kIothread,
  kVhost,      ///< in the VMM, a kernel thread, or of a vhost-user back-end
  kPit,        ///< KVM's timer, a kernel thread that goes with vCPU 0
  kVirtiofsd,  ///< of its own process
  kShim,       ///< Kata's shim, and our proxy above it
  kHelper,     ///< of any other process in the sandbox's cgroup, and KVM's other kernel threads
};

struct RoleInfo {
  Role role;
  std::string_view name;  ///< in JSON, metrics and pins, and the key of its own housekeeping
  /// The field of its set in the JSON form of a plan; empty: its threads go with a vCPU.
  std::string_view plan_field;
  bool has_setting;  ///< [affinity] has a key of its name
  bool is_pinnable;  ///< operators may pin it manually
  int rank;          ///< its place in text tables
};

/// In the order of the enum, which is that of plans and of their JSON form.
inline constexpr RoleInfo kRoles[] = {
    {Role::kVcpu, "vcpu", "", false, true, 0},
    {Role::kEmulator, "emulator", "emulator", true, true, 4},
    {Role::kIothread, "iothread", "iothread", true, true, 2},
    {Role::kVhost, "vhost", "vhost", true, true, 3},
    {Role::kPit, "kvm-pit", "", false, false, 1},
    {Role::kVirtiofsd, "virtiofsd", "virtiofsd", true, false, 5},
    {Role::kShim, "shim", "shim", true, false, 6},
    {Role::kHelper, "helper", "helpers", false, false, 7},
};

constexpr std::size_t index_of(Role role) { return static_cast<std::size_t>(role); }

static_assert(std::ranges::all_of(kRoles, [](const RoleInfo& info) {
  return &info == &kRoles[index_of(info.role)];
}));

constexpr std::string_view role_name(Role role) { return kRoles[index_of(role)].name; }

/// In sentences: "vCPU" for a vCPU, else its name.
constexpr std::string_view role_term(Role role) {
  return role == Role::kVcpu ? "vCPU" : role_name(role);
}

constexpr std::optional<Role> parse_role(std::string_view name) {
  const auto* found = std::ranges::find(kRoles, name, &RoleInfo::name);
  return found == std::end(kRoles) ? std::nullopt : std::optional(found->role);
}

/// A thread that runs where its vCPU does: the plan has no set of its own for it.
constexpr bool goes_with_vcpu(Role role) { return kRoles[index_of(role)].plan_field.empty(); }

/// A value for every role.
template <typename T>
class ByRole {
 public:
  T& operator[](Role role) { return values_[index_of(role)]; }
  const T& operator[](Role role) const { return values_[index_of(role)]; }
  bool operator==(const ByRole&) const = default;

 private:
  std::array<T, std::size(kRoles)> values_{};
};

}  // namespace ka::policy
