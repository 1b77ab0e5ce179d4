// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/cpuset_writer.hpp"

#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>

#include "affinity/host/cgroup_names.hpp"
#include "affinity/host/io_weight.hpp"
#include "affinity/host/systemd.hpp"
#include "base/files.hpp"

namespace ka::host {
namespace {

using base::Result;

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
Result<void> write_set(const base::Clock& clock, const std::filesystem::path& systemd,
                       const std::filesystem::path& directory, const policy::IdSet<Tag>& set) {
  if (!is_unit_name(directory)) return write_file(directory, set);
  auto requested = set_allowed(systemd, directory.filename(), set);
  const std::filesystem::path file = directory / file_of(set);
  if (requested) return wait_for_systemd(clock, file, [&] { return has(file, set); });
  return is_no_unit(requested.error()) ? write_file(directory, set) : requested;
}

/// The message says what a missing file means.
Result<void> write_weight(const std::filesystem::path& directory, int weight) {
  if (const auto now = read_io_weight(directory); !now) return unexpected(now.error());
  return base::write_kernel_file(directory / "io.weight", std::to_string(weight) + '\n');
}

/// A cgroup of which it is known that its weight cannot come, and systemd need not be waited for.
bool can_have_weight(const std::filesystem::path& directory) {
  std::error_code unreadable;
  if (std::filesystem::exists(directory / "io.weight", unreadable)) return true;
  return has_io_controller(directory) &&
         !std::filesystem::exists(directory / "io.stat", unreadable);
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

Result<void> KernelCpusetWriter::write_io_weight(const std::filesystem::path& directory,
                                                 int weight) {
  if (!is_unit_name(directory) || !can_have_weight(directory))
    return write_weight(directory, weight);
  const auto own = weight == kDefaultIoWeight ? std::nullopt : std::optional(weight);
  auto requested = set_io_weight(systemd_, directory.filename(), own);
  if (requested) {
    return wait_for_systemd(clock_, directory / "io.weight", [&] {
      const auto now = read_io_weight(directory);
      return now && *now == weight;
    });
  }
  return is_no_unit(requested.error()) ? write_weight(directory, weight) : requested;
}

/// The kernel has limits of whole disks alone (blkg_conf_open_bdev() in block/blk-cgroup.c).
Result<void> KernelCpusetWriter::write_io_max(const std::filesystem::path& directory,
                                              const std::string& disk, const std::string& limits) {
  if (const auto now = read_io_max(directory); !now) return unexpected(now.error());
  auto done = base::write_kernel_file(directory / "io.max", disk + ' ' + limits + '\n');
  if (done || done.error().number != ENODEV) return done;
  return base::fail(base::ErrorCode::kUnavailable, "there is no disk " + disk);
}

}  // namespace ka::host
