// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/cpuset_writer.hpp"

#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>

#include "affinity/host/cgroup_names.hpp"
#include "affinity/host/systemd.hpp"
#include "base/files.hpp"

namespace ka::host {
namespace {

using base::ErrorCode;
using base::Result;

/// systemd answers before it has written: how often, and how long in all, its work is waited for.
constexpr std::chrono::milliseconds kPollInterval(1);
constexpr int kPolls = 100;

std::filesystem::path file_of(const policy::CpuSet&) { return "cpuset.cpus"; }
std::filesystem::path file_of(const policy::NodeSet&) { return "cpuset.mems"; }

Result<void> set_allowed(const std::filesystem::path& systemd, const std::string& unit,
                         const policy::CpuSet& cpus) {
  return set_allowed_cpus(systemd, unit, cpus);
}

Result<void> set_allowed(const std::filesystem::path& systemd, const std::string& unit,
                         const policy::NodeSet& nodes) {
  return set_allowed_nodes(systemd, unit, nodes);
}

template <typename Tag>
Result<void> write_file(const std::filesystem::path& directory, const policy::IdSet<Tag>& set) {
  return base::write_kernel_file(directory / file_of(set), policy::format_list(set) + '\n');
}

template <typename Tag>
bool has(const std::filesystem::path& file, const policy::IdSet<Tag>& wanted) {
  const auto text = base::read_file(file);
  const auto set = policy::parse_list<Tag>(text ? *text : std::string("?"));
  return set && *set == wanted;
}

template <typename Tag>
Result<void> wait_until_has(const base::Clock& clock, const std::filesystem::path& file,
                            const policy::IdSet<Tag>& set) {
  for (int poll = 0; poll < kPolls; ++poll) {
    if (has(file, set)) return {};
    clock.sleep(kPollInterval);
  }
  return base::fail(ErrorCode::kTransient, "systemd has not written " + file.string() + " yet");
}

template <typename Tag>
Result<void> write_set(const base::Clock& clock, const std::filesystem::path& systemd,
                       const std::filesystem::path& directory, const policy::IdSet<Tag>& set) {
  if (!is_unit_name(directory)) return write_file(directory, set);
  auto requested = set_allowed(systemd, directory.filename(), set);
  if (requested) return wait_until_has(clock, directory / file_of(set), set);
  // No systemd, or no unit of that name: a cgroup that happens to be called so.
  if (requested.error().code == ErrorCode::kUnavailable ||
      requested.error().code == ErrorCode::kNotFound) {
    return write_file(directory, set);
  }
  return requested;
}

}  // namespace

Result<void> KernelCpusetWriter::write(const std::filesystem::path& directory,
                                       const policy::CpuSet& cpus) {
  return write_set(clock_, systemd_, directory, cpus);
}

Result<void> KernelCpusetWriter::write_mems(const std::filesystem::path& directory,
                                            const policy::NodeSet& nodes) {
  return write_set(clock_, systemd_, directory, nodes);
}

}  // namespace ka::host
