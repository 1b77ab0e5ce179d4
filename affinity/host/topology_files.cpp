// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/topology_files.hpp"

#include <string>
#include <string_view>

#include "base/files.hpp"

namespace ka::host {
namespace {

namespace fs = std::filesystem;

auto unreadable(const fs::path& file) {
  return base::fail(base::ErrorCode::kTransient,
                    file.native() + " is there, and was not read: the topology is not known");
}

/// A directory that cannot be listed is there, too.
base::Result<void> expect_none(const fs::path& directory) {
  const auto names = base::list_directory(directory);
  if (is_gone(names) || (names && names->empty())) return {};
  if (!names) return unexpected(names.error());
  return unreadable(directory);
}

/// hwloc may have a reason to leave out what it could read.
base::Result<void> expect_readable(const fs::path& file) {
  const auto text = base::read_file(file);
  if (text || is_gone(text)) return {};
  return unexpected(text.error());
}

/// "node3": 3; -1 for anything else.
int number_of_node(std::string_view name) {
  if (!name.starts_with("node")) return -1;
  return static_cast<int>(base::parse_number(name.substr(4)).value_or(-1));
}

/// One that has CPUs and is left out was not read.
base::Result<void> check_node(const fs::path& directory) {
  const auto cpus = base::read_file(directory / "cpulist");
  if (is_gone(cpus)) return {};
  if (!cpus) return unexpected(cpus.error());
  return *cpus == "\n" || cpus->empty() ? base::Result<void>{} : unreadable(directory / "cpumap");
}

base::Result<void> check_nodes(const fs::path& directory, const policy::NodeSet& known) {
  const auto names = base::list_directory(directory);
  if (is_gone(names)) return {};
  if (!names) return unexpected(names.error());
  for (const std::string& name : *names) {
    const int node = number_of_node(name);
    if (node < 0 || known.contains(node)) continue;
    if (auto good = check_node(directory / name); !good) return good;
  }
  return {};
}

}  // namespace

base::Result<void> check_left_out(const fs::path& system, const LeftOut& left_out) {
  const auto directory_of = [&system](int cpu) {
    return system / "cpu" / ("cpu" + std::to_string(cpu));
  };
  for (const int cpu : left_out.cores) {
    if (auto good = expect_none(directory_of(cpu) / "topology"); !good) return good;
  }
  // Of a kernel without it hwloc reads nothing else either.
  if (!left_out.cores.empty()) return {};
  for (const int cpu : left_out.caches) {
    const fs::path cache = directory_of(cpu) / "cache/index3";
    for (const char* file : {"level", "shared_cpu_map"}) {
      if (auto good = expect_readable(cache / file); !good) return good;
    }
  }
  return check_nodes(system / "node", left_out.nodes);
}

}  // namespace ka::host
