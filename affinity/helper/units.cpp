// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/units.hpp"

#include "affinity/helper/mask_files.hpp"
#include "affinity/host/cgroup.hpp"
#include "affinity/host/systemd.hpp"
#include "policy/facts/quiet.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;
using policy::CpuSet;

Result<std::filesystem::path> mount_of(const Roots& roots) {
  const auto cgroups = host::Cgroups::find(roots.proc);
  if (!cgroups) return unexpected(cgroups.error());
  if (cgroups->version() == 2) return cgroups->mount();
  return base::fail(ErrorCode::kUnavailable, "it takes cgroup v2");
}

/// An empty set is no limit; so is one of all CPUs: the kernel lets nobody empty the file of a
/// cgroup with processes (ENOSPC; validate_change() in kernel/cgroup/cpuset.c).
Result<CpuSet> read_unit(const std::filesystem::path& cgroup, const CpuSet& possible) {
  auto cpus = read_cpus(cgroup / "cpuset.cpus", SetFormat::kList);
  return cpus && cpus->empty() ? possible : cpus;
}

}  // namespace

/// A unit that has not started, or has no cpuset controller, has no file.
Result<std::vector<HostMask>> Units::read() const {
  const auto mount = mount_of(roots_);
  if (!mount) return unexpected(mount.error());
  const auto possible = read_possible(roots_.sys);
  if (!possible) return unexpected(possible.error());
  std::vector<HostMask> masks;
  for (const char* unit : policy::kHostUnits) {
    auto cpus = read_unit(*mount / unit, *possible);
    if (cpus)
      masks.push_back({unit, unit, *std::move(cpus), {}});
    else if (!is_gone(cpus))
      return unexpected(cpus.error());
  }
  if (!masks.empty()) return masks;
  return base::fail(ErrorCode::kUnavailable, "systemd has no unit with the cpuset controller");
}

/// systemd reports no error of a write that the kernel refuses: so all CPUs are written, too,
/// before what the unit has of its own is dropped.
Result<void> Units::write(const HostMask& mask, const CpuSet& cpus) const {
  const auto possible = read_possible(roots_.sys);
  if (!possible) return unexpected(possible.error());
  auto done = allow(mask, cpus);
  if (!done || !possible->subset_of(cpus)) return done;
  return host::set_allowed_cpus(roots_.systemd, mask.name, {});
}

Result<void> Units::allow(const HostMask& mask, const CpuSet& cpus) const {
  const auto mount = mount_of(roots_);
  if (!mount) return unexpected(mount.error());
  auto requested = host::set_allowed_cpus(roots_.systemd, mask.name, cpus);
  if (!requested) return requested;
  const auto file = *mount / mask.name / "cpuset.cpus";
  return host::wait_for_systemd(clock_, file, [&] {
    const auto now = read_cpus(file, SetFormat::kList);
    return now && *now == cpus;
  });
}

}  // namespace ka::helper
