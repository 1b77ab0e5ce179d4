// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/cpuset_writer.hpp"

#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>

#include "affinity/host/systemd.hpp"
#include "base/files.hpp"

namespace ka::host {
namespace {

using base::ErrorCode;
using base::Result;

/// systemd answers before it has written: how often, and how long in all, its work is waited for.
constexpr std::chrono::milliseconds kPollInterval(1);
constexpr int kPolls = 100;

bool is_unit(const std::filesystem::path& directory) {
  const auto kind = directory.extension();
  return kind == ".scope" || kind == ".service" || kind == ".slice";
}

Result<void> write_file(const std::filesystem::path& directory, const policy::CpuSet& cpus) {
  return base::write_kernel_file(directory / "cpuset.cpus", policy::format_list(cpus) + '\n');
}

bool has(const std::filesystem::path& directory, const policy::CpuSet& cpus) {
  const auto text = base::read_file(directory / "cpuset.cpus");
  const auto set = policy::parse_list<policy::CpuTag>(text ? *text : std::string("?"));
  return set && *set == cpus;
}

Result<void> wait_until_has(const base::Clock& clock, const std::filesystem::path& directory,
                            const policy::CpuSet& cpus) {
  for (int poll = 0; poll < kPolls; ++poll) {
    if (has(directory, cpus)) return {};
    clock.sleep(kPollInterval);
  }
  return base::fail(ErrorCode::kTransient,
                    "systemd has not written " + directory.string() + "/cpuset.cpus yet");
}

}  // namespace

Result<void> KernelCpusetWriter::write(const std::filesystem::path& directory,
                                       const policy::CpuSet& cpus) {
  if (!is_unit(directory)) return write_file(directory, cpus);
  auto requested = set_allowed_cpus(systemd_, directory.filename(), cpus);
  if (requested) return wait_until_has(clock_, directory, cpus);
  // No systemd, or no unit of that name: a cgroup that happens to be called so.
  if (requested.error().code == ErrorCode::kUnavailable ||
      requested.error().code == ErrorCode::kNotFound) {
    return write_file(directory, cpus);
  }
  return requested;
}

}  // namespace ka::host
