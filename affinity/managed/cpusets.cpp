// SPDX-License-Identifier: Apache-2.0
#include "affinity/managed/cpusets.hpp"

#include <utility>

#include "affinity/host/sandbox_cgroup.hpp"

namespace ka::managed {

using policy::CpuSet;

/// Empty where it is not named after the container: then it may be anyone's.
std::filesystem::path Cpusets::directory(const std::string& cgroup,
                                         const std::string& container) const {
  if (!cgroups_ || cgroups_->version() != 2) return {};
  return host::container_cgroup(cgroup, container, cgroups_->mount());
}

std::optional<CpuSet> Cpusets::read(const std::string& cgroup, const std::string& container) const {
  const auto path = directory(cgroup, container);
  if (path.empty()) return std::nullopt;
  const auto inner = host::inner_cgroup(path);
  const auto cpuset = cgroups_->cpuset(inner.empty() ? path : inner);
  return cpuset ? std::optional(cpuset->effective()) : std::nullopt;
}

base::Result<void> Cpusets::write(const std::string& cgroup, const std::string& container,
                                  const CpuSet& cpus) {
  const auto path = directory(cgroup, container);
  auto written = writer_.write(path, cpus);
  const auto inner = host::inner_cgroup(path);
  return written && !inner.empty() ? writer_.write(inner, cpus) : written;
}

}  // namespace ka::managed
