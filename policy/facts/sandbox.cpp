// SPDX-License-Identifier: Apache-2.0
#include "policy/facts/sandbox.hpp"

#include <array>
#include <utility>

namespace ka::policy {
namespace {

constexpr std::array<std::pair<Role, std::string_view>, 8> kNames{{
    {Role::kVcpu, "vcpu"},
    {Role::kEmulator, "emulator"},
    {Role::kIothread, "iothread"},
    {Role::kVhost, "vhost"},
    {Role::kPit, "kvm-pit"},
    {Role::kVirtiofsd, "virtiofsd"},
    {Role::kShim, "shim"},
    {Role::kHelper, "helper"},
}};

}  // namespace

const CpuSet* SandboxFacts::cgroup_of(Role role) const {
  const auto own = cgroup_by_role.find(role);
  if (own != cgroup_by_role.end()) return &own->second;
  return cgroup_cpus ? &*cgroup_cpus : nullptr;
}

std::string_view role_name(Role role) {
  for (const auto& [value, name] : kNames) {
    if (value == role) return name;
  }
  return "unknown";
}

std::optional<Role> parse_role(std::string_view name) {
  for (const auto& [value, text] : kNames) {
    if (text == name) return value;
  }
  return std::nullopt;
}

}  // namespace ka::policy
