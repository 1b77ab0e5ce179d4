// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/cfs_quota.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "affinity/host/cgroup_names.hpp"
#include "affinity/host/systemd.hpp"
#include "base/files.hpp"

namespace ka::host {
namespace {

namespace fs = std::filesystem;

std::int64_t number_in(const fs::path& file) {
  const auto text = base::read_file(file);
  return text ? base::parse_number(*text).value_or(0) : 0;
}

/// "nr_throttled 12" of cpu.stat, by its name.
std::uint64_t counter(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(name) || line.substr(name.size(), 1) != " ") continue;
    const auto number = base::parse_number(line.substr(name.size() + 1));
    return static_cast<std::uint64_t>(std::max(0LL, number.value_or(0)));
  }
  return 0;
}

/// "200000 100000", or "max 100000": none.
CfsQuota parse_v2(const fs::path& directory, std::string_view text) {
  const std::size_t blank = std::min(text.find(' '), text.size());
  return {directory, base::parse_number(text.substr(0, blank)).value_or(0),
          base::parse_number(text.substr(std::min(blank + 1, text.size()))).value_or(0)};
}

CfsQuota read_v2(const fs::path& directory) {
  return parse_v2(directory, base::read_file(directory / kCpuMaxFile).value_or(""));
}

/// -1: none.
CfsQuota read_v1(const fs::path& directory) {
  return {directory, number_in(directory / "cpu.cfs_quota_us"),
          number_in(directory / "cpu.cfs_period_us")};
}

/// The kernel has no larger one, in microseconds (MAX_BW in kernel/sched/sched.h).
constexpr std::int64_t kMostQuota = (std::int64_t{1} << 44) - 1;
constexpr double kSecond = 1e6;              // microseconds
constexpr std::uint64_t kLeastQuota = 1000;  // systemd has no smaller one

/// Microseconds of CPU time a second.
std::optional<std::uint64_t> quota_per_second(std::string_view text) {
  const CfsQuota quota = parse_v2({}, text);
  if (quota.quota <= 0 || quota.quota > kMostQuota || quota.period <= 0) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<double>(quota.quota) * kSecond /
                                    static_cast<double>(quota.period));
}

std::optional<CfsQuota> read_quota(const fs::path& directory, bool v2) {
  CfsQuota quota = v2 ? read_v2(directory) : read_v1(directory);
  if (quota.quota <= 0 || quota.period <= 0) return std::nullopt;
  const std::string stat = base::read_file(directory / "cpu.stat").value_or("");
  quota.periods = counter(stat, "nr_periods");
  quota.throttled = counter(stat, "nr_throttled");
  return quota;
}

}  // namespace

std::vector<CfsQuota> quotas_of(const base::ProcFs& proc, const fs::path& cgroups, int tid) {
  std::error_code absent;
  const bool v2 = fs::exists(cgroups / "cgroup.controllers", absent);
  const auto path = proc.cgroup(tid, v2 ? "" : "cpu");
  if (!path) return {};
  const fs::path top = v2 ? cgroups : cgroups / "cpu";
  std::vector<CfsQuota> found;
  for (fs::path below = fs::path(*path).relative_path(); !below.empty();
       below = below.parent_path()) {
    if (auto quota = read_quota(top / below, v2)) found.push_back(std::move(*quota));
  }
  return found;
}

bool is_cpu_quota(std::string_view text) { return quota_per_second(text).has_value(); }

bool is_rounded_quota(std::string_view text, std::string_view wanted) {
  const auto per_second = quota_per_second(wanted);
  if (!per_second || !is_cpu_quota(text)) return false;
  const CfsQuota now = parse_v2({}, text);
  const auto rounded = static_cast<std::uint64_t>(static_cast<double>(*per_second) *
                                                  static_cast<double>(now.period) / kSecond);
  return static_cast<std::uint64_t>(now.quota) == std::max(rounded, kLeastQuota);
}

/// systemd writes after it has answered: a quota is waited for, or its own would come last.
base::Result<void> write_cpu_max(const base::Clock& clock, const fs::path& systemd,
                                 const fs::path& directory, const std::string& text) {
  const fs::path file = directory / kCpuMaxFile;
  if (is_unit_name(directory)) {
    const auto quota = quota_per_second(text);
    const auto requested = set_cpu_quota(systemd, directory.filename(), quota);
    if (!requested && !is_no_unit(requested.error())) return requested;
    if (requested && quota) {
      (void)wait_for_systemd(clock, file,
                             [&] { return is_cpu_quota(base::read_file(file).value_or("")); });
    }
  }
  return base::write_kernel_file(file, text + '\n');
}

}  // namespace ka::host
