// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/settings.hpp"

#include <array>
#include <utility>

#include "base/sets.hpp"

namespace ka::documents {
namespace {

using policy::plan::GuestAgent;
using policy::plan::Housekeeping;
using policy::plan::VcpuPinning;

constexpr std::array<std::pair<VcpuPinning, std::string_view>, 4> kPinnings{{
    {VcpuPinning::kDedicated, "dedicated"},
    {VcpuPinning::kBalanced, "balanced"},
    {VcpuPinning::kMask, "mask"},
    {VcpuPinning::kNone, "none"},
}};

constexpr std::array<std::pair<Housekeeping::Kind, std::string_view>, 3> kHousekeepings{{
    {Housekeeping::Kind::kSandbox, "sandbox"},
    {Housekeeping::Kind::kSharedPool, "shared-pool"},
    {Housekeeping::Kind::kIsolate, "isolate"},
}};

constexpr std::array<std::pair<GuestAgent, std::string_view>, 4> kGuestAgents{{
    {GuestAgent::kAuto, "auto"},
    {GuestAgent::kOurs, "agent"},
    {GuestAgent::kKataAgent, "kata-agent"},
    {GuestAgent::kNone, "none"},
}};

}  // namespace

base::Result<GuestAgent> parse_guest_agent(std::string_view text) {
  for (const auto& [agent, name] : kGuestAgents) {
    if (name == text) return agent;
  }
  return base::fail(
      base::ErrorCode::kInvalid,
      '"' + std::string(text) + "\" is not one of \"auto\", \"agent\", \"kata-agent\", \"none\"");
}

base::Result<VcpuPinning> parse_vcpu_pinning(std::string_view text) {
  for (const auto& [pinning, name] : kPinnings) {
    if (name == text) return pinning;
  }
  return base::fail(
      base::ErrorCode::kInvalid,
      '"' + std::string(text) + "\" is not one of \"dedicated\", \"balanced\", \"mask\", \"none\"");
}

std::string_view vcpu_pinning_name(VcpuPinning pinning) {
  for (const auto& [value, name] : kPinnings) {
    if (value == pinning) return name;
  }
  return "unknown";
}

base::Result<Housekeeping> parse_housekeeping(std::string_view text) {
  for (const auto& [kind, name] : kHousekeepings) {
    if (name == text) return Housekeeping{kind, {}};
  }
  constexpr std::string_view kAllowed =
      "is not one of \"sandbox\", \"shared-pool\", \"isolate\" or a cpuset";
  const bool is_cpu_list = !text.empty() && text.front() >= '0' && text.front() <= '9';
  if (!is_cpu_list) {
    return base::fail(base::ErrorCode::kInvalid,
                      '"' + std::string(text) + "\" " + std::string(kAllowed));
  }
  auto cpus = base::parse_set<policy::CpuTag>(text);
  if (!cpus) return unexpected(std::move(cpus.error()));
  return Housekeeping{Housekeeping::Kind::kCpus, std::move(*cpus)};
}

std::string housekeeping_text(const Housekeeping& housekeeping) {
  for (const auto& [kind, name] : kHousekeepings) {
    if (kind == housekeeping.kind) return std::string(name);
  }
  return policy::format_list(housekeeping.cpus);
}

}  // namespace ka::documents
