// SPDX-License-Identifier: Apache-2.0
#include "affinity/managed/cpusets.hpp"

#include <utility>

#include "affinity/host/cgroup_names.hpp"
#include "affinity/host/sandbox_cgroup.hpp"
#include "base/files.hpp"

namespace ka::managed {

namespace {

base::Result<std::optional<AllowedSets>> absent_or(const base::Error& error) {
  if (is_gone(error)) return std::nullopt;
  return unexpected(error);
}

}  // namespace

/// Empty where it is not named after the container: then it may be anyone's.
std::filesystem::path Cpusets::directory(const std::string& cgroup,
                                         const std::string& container) const {
  if (!cgroups_ || cgroups_->version() != 2) return {};
  return host::container_cgroup(cgroup, container, cgroups_->mount());
}

base::Result<std::optional<AllowedSets>> Cpusets::read(const std::string& cgroup,
                                                       const std::string& container) const {
  auto path = directory(cgroup, container);
  if (path.empty()) return std::nullopt;
  if (auto inner = host::inner_cgroup(path); !inner.empty()) path = std::move(inner);
  const auto cpuset = cgroups_->cpuset(path);
  if (!cpuset) return absent_or(cpuset.error());
  const auto mems = cgroups_->memory_nodes(path);
  if (!mems) return absent_or(mems.error());
  return AllowedSets{cpuset->effective(), *mems};
}

bool Cpusets::is_running(const std::string& cgroup, const std::string& container) const {
  const auto path = directory(cgroup, container);
  if (path.empty()) return false;
  const auto events = base::read_file(path / "cgroup.events");
  if (!events) return !is_gone(events);
  return events->find("populated 1") != std::string::npos;
}

base::Result<void> Cpusets::write(const std::string& cgroup, const std::string& container,
                                  const AllowedSets& actual, const AllowedSets& wanted) {
  const auto path = directory(cgroup, container);
  const auto inner = host::inner_cgroup(path);
  for (const auto& one : {path, inner}) {
    if (one.empty()) continue;
    base::Result<void> written;
    if (wanted.cpus != actual.cpus) written = writer_.write(one, wanted.cpus);
    if (written && wanted.mems != actual.mems) written = writer_.write_mems(one, wanted.mems);
    if (!written) return written;
  }
  return {};
}

}  // namespace ka::managed
