// SPDX-License-Identifier: Apache-2.0
#include "policy/facts/cpu_tuning.hpp"

#include <charconv>

namespace ka::policy {
namespace {

constexpr std::string_view kMostLatency = "max_latency:";
/// CPUFREQ_NAME_LEN in include/linux/cpufreq.h, with the zero byte.
constexpr std::size_t kLongestGovernor = 15;

/// Not negative; absent: it is none.
std::optional<int> whole_number(std::string_view text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size() && number >= 0;
  return is_whole ? std::optional(number) : std::nullopt;
}

/// As the kernel's file has it (Documentation/ABI/testing/sysfs-devices-power): "n/a" is no idle
/// state at all, "0" any. Empty: there is no such value.
std::string latency_of(std::string_view value) {
  if (value == "disable") return "n/a";
  if (value == "enable") return "0";
  if (!value.starts_with(kMostLatency)) return {};
  value.remove_prefix(kMostLatency.size());
  const auto microseconds = whole_number(value);
  return microseconds && *microseconds > 0 ? std::to_string(*microseconds) : std::string();
}

/// Absent: there is no such value. "true" is CRI-O's old word for it.
std::optional<bool> is_disabled(std::string_view value) {
  if (value == "disable" || value == "true") return true;
  return value == "enable" || value == "false" ? std::optional(false) : std::nullopt;
}

/// Absent: there is no such value.
std::optional<HostInterrupts> interrupts_of(std::string_view value) {
  if (value == "housekeeping") return HostInterrupts::kFirstCore;
  const auto disabled = is_disabled(value);
  if (!disabled) return std::nullopt;
  return *disabled ? HostInterrupts::kNowhere : HostInterrupts::kEverywhere;
}

}  // namespace

bool is_governor(std::string_view text) {
  return text.size() <= kLongestGovernor &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

bool is_resume_latency(std::string_view text) {
  return text.empty() || text == "n/a" || whole_number(text).has_value();
}

bool is_tuning_request(std::string_view annotation) {
  return std::ranges::any_of(kTuningKinds, [annotation](const TuningKindInfo& info) {
    if (!annotation.starts_with(info.annotation)) return false;
    const std::string_view scope = annotation.substr(info.annotation.size());
    return scope.empty() || (scope.starts_with('/') && scope.size() > 1);
  });
}

bool requests_tuning(const Annotations& annotations) {
  return std::ranges::any_of(annotations,
                             [](const auto& entry) { return is_tuning_request(entry.first); });
}

std::optional<std::string> requested_tuning_of(const Annotations& annotations, TuningKind kind,
                                               std::string_view container) {
  const std::string key(annotation_of(kind));
  for (const std::string& scope : {'/' + std::string(container), std::string()}) {
    const auto found = annotations.find(key + scope);
    if (found != annotations.end()) return found->second;
  }
  return std::nullopt;
}

bool apply_tuning(TuningKind kind, const std::string& value, CpuTuning& tuning) {
  if (kind == TuningKind::kIdleStates) {
    const std::string latency = latency_of(value);
    if (!latency.empty()) tuning.resume_latency = latency;
    return !latency.empty();
  }
  if (kind == TuningKind::kGovernor) {
    const bool is_one = !value.empty() && is_governor(value);
    if (is_one) tuning.governor = value;
    return is_one;
  }
  if (kind == TuningKind::kInterrupts) {
    const auto interrupts = interrupts_of(value);
    if (interrupts) tuning.interrupts = *interrupts;
    return interrupts.has_value();
  }
  const auto disabled = is_disabled(value);
  if (disabled && kind == TuningKind::kLoadBalancing) tuning.is_isolated = *disabled;
  if (disabled && kind == TuningKind::kQuota) tuning.has_quota = !*disabled;
  return disabled.has_value();
}

}  // namespace ka::policy
