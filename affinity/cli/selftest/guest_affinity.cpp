// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/guest_affinity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "affinity/cli/selftest/pods.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace ka::cli::selftest {
namespace {

using Level = Finding::Level;

constexpr const char* kFiles[] = {"/proc/1/status", "/proc/cpuinfo"};
constexpr std::string_view kAllowed = "Cpus_allowed_list";
constexpr std::string_view kNumber = "processor";
constexpr std::string_view kApicId = "apicid";

auto unreadable(std::string_view what) {
  return base::fail(base::ErrorCode::kInvalid, "what the guest prints has " + std::string(what));
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// "apicid\t\t: 7": what is before the colon, and after it.
std::pair<std::string_view, std::string_view> split(std::string_view line) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return {};
  return {trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1))};
}

/// Reads line by line; false: one of them is not as the kernel writes it.
class AffinityParser {
 public:
  bool add(std::string_view line) {
    const auto [key, value] = split(line);
    if (key == kAllowed) return set_allowed(value);
    if (key == kNumber) return set_number(value);
    if (key == kApicId) return set_apic_id(value);
    return true;
  }
  const GuestAffinity& affinity() const { return affinity_; }

 private:
  bool set_allowed(std::string_view value) {
    const auto cpus = policy::parse_list<policy::GuestCpuTag>(value);
    if (cpus) affinity_.allowed = *cpus;
    return cpus.has_value();
  }
  bool set_number(std::string_view value) {
    const auto number = base::parse_number(value);
    if (!number || *number < 0 || *number >= policy::kMaxIds) return false;
    number_ = static_cast<int>(*number);
    return true;
  }
  bool set_apic_id(std::string_view value) {
    const auto id = base::parse_number(value);
    if (!id || *id < 0 || !number_) return false;
    return affinity_.apic_ids.emplace(*number_, static_cast<std::uint64_t>(*id)).second;
  }

  GuestAffinity affinity_;
  std::optional<int> number_;  ///< of the CPU whose lines are read
};

const ThreadSeen* find_vcpu(const Reading& reading, std::uint64_t apic_id) {
  const auto found = std::ranges::find(reading.own, std::optional(apic_id), &ThreadSeen::apic_id);
  return found == reading.own.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::vector<std::string>> guest_affinity_commands() {
  return {{std::string(kShowAffinity), "--show-affinity"},
          {"cat", kFiles[0], kFiles[1]},
          {"/bin/busybox", "cat", kFiles[0], kFiles[1]}};
}

base::Result<GuestAffinity> parse_guest_affinity(std::string_view text) {
  AffinityParser parser;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!parser.add(line)) return unreadable("an unexpected line: " + base::printable(line));
  }
  if (parser.affinity().allowed.empty()) return unreadable("no Cpus_allowed_list");
  if (parser.affinity().apic_ids.empty()) return unreadable("no apicid");
  return parser.affinity();
}

Finding check_guest(const GuestAffinity& affinity, const Reading& reading,
                    const policy::CpuSet& own) {
  policy::GuestCpuSet numbers, online;
  policy::CpuSet reached;
  bool is_alone = true;
  for (const auto& [number, apic_id] : affinity.apic_ids) {
    online.add(number);
    if (!affinity.allowed.contains(number)) continue;
    const ThreadSeen* vcpu = find_vcpu(reading, apic_id);
    if (vcpu == nullptr) {
      return guest_not_seen(fmt::format("KVM has no vCPU with the APIC id {}", apic_id));
    }
    numbers.add(number);
    reached |= vcpu->cpus;
    is_alone = is_alone && vcpu->cpus.size() == 1 && vcpu->cpus.subset_of(own);
  }
  const std::string text = fmt::format(
      "the container may run on guest CPUs {} of {}, whose vCPUs run on CPUs {}",
      policy::format_list(numbers), policy::format_list(online), policy::format_list(reached));
  if (!own.subset_of(reached)) {
    return {Finding::By::kGuest, Level::kBroken,
            fmt::format("{}; its own are {}", text, policy::format_list(own))};
  }
  if (is_alone) return {Finding::By::kGuest, Level::kHolds, text + ", its own"};
  return {Finding::By::kGuest, Level::kDegraded, text + ": not only on those that it owns"};
}

Finding guest_not_seen(const std::string& reason) {
  return {Finding::By::kGuest, Level::kNotSeen,
          "in its guest the container was not seen: " + reason};
}

}  // namespace ka::cli::selftest
