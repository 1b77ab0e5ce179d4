// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/topology.hpp"

#include <hwloc.h>
#include <numa.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "affinity/host/topology_files.hpp"
#include "base/files.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::host {
namespace {

using policy::Cpu;
using policy::CpuSet;
using policy::Topology;

using Hwloc = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;
using Distances = std::vector<std::vector<int>>;

constexpr int kLocalDistance = 10;
constexpr int kRemoteDistance = 20;

auto fail(const std::string& what) { return base::fail(base::ErrorCode::kInvalid, what); }

/// Sets HWLOC_FSROOT while it lives: hwloc has no call for it.
class FsRoot {
 public:
  explicit FsRoot(const std::filesystem::path& root) {
    if (const char* old = std::getenv(kName)) old_ = old;
    ::setenv(kName, root.c_str(), 1);
  }
  FsRoot(const FsRoot&) = delete;
  FsRoot& operator=(const FsRoot&) = delete;
  ~FsRoot() {
    if (old_) {
      ::setenv(kName, old_->c_str(), 1);
    } else {
      ::unsetenv(kName);
    }
  }

 private:
  static constexpr const char* kName = "HWLOC_FSROOT";
  std::optional<std::string> old_;
};

/// A topology that keeps only what we read, with the CPUs that our own cgroup refuses. Without the
/// "x86" backend: it moves the calling thread over all CPUs to run CPUID there, also over CPUs that
/// belong to another program, and adds nothing that Linux does not report.
Hwloc new_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return {nullptr, hwloc_topology_destroy};
  Hwloc topology(raw, hwloc_topology_destroy);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  for (const auto type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_CORE, HWLOC_OBJ_L3CACHE}) {
    hwloc_topology_set_type_filter(raw, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  }
  // Nodes smaller than a package hang on groups: without them every such node would be local to
  // the whole package.
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  return topology;
}

int id_of(const hwloc_obj& object) { return static_cast<int>(object.os_index); }

/// Objects of a type, in logical order.
std::vector<const hwloc_obj*> objects(hwloc_topology_t topology, hwloc_obj_type_t type) {
  std::vector<const hwloc_obj*> found;
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;) {
    found.push_back(object);
  }
  return found;
}

CpuSet to_cpu_set(hwloc_const_bitmap_t bitmap) {
  CpuSet cpus;
  for (int cpu = hwloc_bitmap_first(bitmap); cpu >= 0 && cpu < policy::kMaxIds;
       cpu = hwloc_bitmap_next(bitmap, cpu)) {
    cpus.add(cpu);
  }
  return cpus;
}

/// NUMA nodes by ascending number.
std::vector<int> node_ids(hwloc_topology_t topology) {
  std::vector<int> ids;
  for (const auto* node : objects(topology, HWLOC_OBJ_NUMANODE)) ids.push_back(id_of(*node));
  std::ranges::sort(ids);
  return ids;
}

/// The node of a CPU. Where several are local (memory of several kinds), the smallest number is the
/// one that the kernel counts the CPU to; a CPU whose node is offline goes to the first node.
int node_of(hwloc_topology_t topology, const hwloc_obj& pu) {
  const int local = hwloc_bitmap_first(pu.nodeset);
  if (local >= 0) return local;
  const auto ids = node_ids(topology);
  return ids.empty() ? 0 : ids.front();
}

/// The logical index of what contains a CPU, or `otherwise`.
int group_of(hwloc_topology_t topology, const hwloc_obj& pu, hwloc_obj_type_t type, int otherwise) {
  auto* child = const_cast<hwloc_obj_t>(&pu);
  const hwloc_obj* group = hwloc_get_ancestor_obj_by_type(topology, type, child);
  return group == nullptr ? otherwise : static_cast<int>(group->logical_index);
}

int count(hwloc_topology_t topology, hwloc_obj_type_t type) {
  return std::max(0, hwloc_get_nbobjs_by_type(topology, type));
}

std::vector<Cpu> online_cpus(hwloc_topology_t topology) {
  const int cores = count(topology, HWLOC_OBJ_CORE);
  const int caches = count(topology, HWLOC_OBJ_L3CACHE);
  std::vector<Cpu> cpus;
  for (const auto* pu : objects(topology, HWLOC_OBJ_PU)) {
    Cpu cpu;
    cpu.cpu = id_of(*pu);
    cpu.numa = node_of(topology, *pu);
    cpu.core = group_of(topology, *pu, HWLOC_OBJ_CORE, cores + static_cast<int>(pu->logical_index));
    cpu.socket = group_of(topology, *pu, HWLOC_OBJ_PACKAGE, 0);
    cpu.l3 = group_of(topology, *pu, HWLOC_OBJ_L3CACHE, caches + cpu.socket);
    cpus.push_back(cpu);
  }
  return cpus;
}

/// hwloc ranks the kinds of CPUs where it can: efficiency 0 is the slowest, -1 not known.
void add_kinds(hwloc_topology_t topology, std::vector<Cpu>& cpus) {
  const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> bitmap(hwloc_bitmap_alloc(),
                                                                             hwloc_bitmap_free);
  const int kinds = hwloc_cpukinds_get_nr(topology, 0);
  for (int kind = 0; kind < kinds; ++kind) {
    int efficiency = -1;
    hwloc_cpukinds_get_info(topology, static_cast<unsigned>(kind), bitmap.get(), &efficiency,
                            nullptr, nullptr, 0);
    const CpuSet members = to_cpu_set(bitmap.get());
    for (Cpu& cpu : cpus) {
      if (members.contains(cpu.cpu)) cpu.kind = std::max(0, efficiency);
    }
  }
}

/// The distances that hwloc found (the kernel's, or those in an XML file); defaults where it found
/// none.
Distances hwloc_distances(hwloc_topology_t topology, const std::vector<int>& nodes) {
  Distances matrix(nodes.size(), std::vector<int>(nodes.size(), kRemoteDistance));
  for (std::size_t i = 0; i < nodes.size(); ++i) matrix[i][i] = kLocalDistance;
  unsigned number = 1;
  hwloc_distances_s* found = nullptr;
  if (hwloc_distances_get_by_name(topology, "NUMALatency", &number, &found, 0) != 0 ||
      number == 0 || found == nullptr) {
    return matrix;
  }
  const auto row_of = [&nodes](const hwloc_obj& node) {
    return static_cast<std::size_t>(std::ranges::lower_bound(nodes, id_of(node)) - nodes.begin());
  };
  for (unsigned i = 0; i < found->nbobjs; ++i) {
    for (unsigned j = 0; j < found->nbobjs; ++j) {
      constexpr hwloc_uint64_t kMost = std::numeric_limits<int>::max();
      matrix[row_of(*found->objs[i])][row_of(*found->objs[j])] =
          static_cast<int>(std::min(found->values[i * found->nbobjs + j], kMost));
    }
  }
  hwloc_distances_release(topology, found);
  return matrix;
}

/// The running host's distances, which libnuma reads from the kernel; nothing without NUMA.
std::optional<Distances> numa_distances(const std::vector<int>& nodes) {
  if (::numa_available() < 0) return std::nullopt;
  Distances matrix;
  for (const int from : nodes) {
    auto& row = matrix.emplace_back();
    for (const int to : nodes) row.push_back(::numa_distance(from, to));
  }
  // libnuma returns 0 for "not known".
  const auto unknown = [](const auto& row) { return std::ranges::find(row, 0) != row.end(); };
  if (std::ranges::any_of(matrix, unknown)) return std::nullopt;
  return matrix;
}

/// CPUs that exist and are offline. Where they would sit is not known before they come online: each
/// is a core of its own beside the first CPU.
std::vector<Cpu> offline_cpus(hwloc_topology_t topology, const std::vector<Cpu>& online) {
  CpuSet missing = to_cpu_set(hwloc_get_root_obj(topology)->complete_cpuset);
  int core = -1;
  for (const Cpu& cpu : online) {
    missing.remove(cpu.cpu);
    core = std::max(core, cpu.core);
  }
  std::vector<Cpu> cpus;
  for (const int number : missing) {
    Cpu cpu = online.front();
    cpu.cpu = number;
    cpu.core = ++core;
    cpu.kind = 0;
    cpu.online = false;
    cpus.push_back(cpu);
  }
  return cpus;
}

/// The parts of a machine on their way to a Topology.
struct Parts {
  std::vector<Cpu> cpus;
  std::vector<int> nodes;
  Distances distances;
};

/// Loads what was set up on `topology` and takes it apart.
base::Result<Parts> load(hwloc_topology_t topology) {
  if (hwloc_topology_load(topology) != 0) return fail("hwloc cannot build a topology from it");
  Parts parts;
  parts.cpus = online_cpus(topology);
  add_kinds(topology, parts.cpus);
  const auto offline = offline_cpus(topology, parts.cpus);
  parts.cpus.insert(parts.cpus.end(), offline.begin(), offline.end());
  parts.nodes = node_ids(topology);
  parts.distances = hwloc_distances(topology, parts.nodes);
  return parts;
}

base::Result<Topology> make(Parts parts) {
  auto topology =
      Topology::make(std::move(parts.cpus), std::move(parts.distances), std::move(parts.nodes));
  if (!topology) return fail(topology.error());
  return std::move(*topology);
}

/// The node of an offline CPU, by its link cpuN/nodeM; -1 where there is none.
int linked_node(const std::filesystem::path& cpu_directory) {
  const auto names = base::list_directory(cpu_directory);
  if (!names) return -1;
  for (const std::string& name : *names) {
    if (!name.starts_with("node")) continue;
    if (const auto node = base::parse_number(std::string_view(name).substr(4))) {
      return static_cast<int>(*node);
    }
  }
  return -1;
}

/// Moves offline CPUs to their nodes, and what goes with a node, where the kernel has them.
void place_offline(const std::filesystem::path& system_cpu, Parts& parts) {
  for (Cpu& cpu : parts.cpus) {
    if (cpu.online) continue;
    const int node = linked_node(system_cpu / ("cpu" + std::to_string(cpu.cpu)));
    const auto neighbour = std::ranges::find_if(
        parts.cpus, [node](const Cpu& other) { return other.online && other.numa == node; });
    if (neighbour == parts.cpus.end()) continue;
    cpu.numa = node;
    cpu.socket = neighbour->socket;
    cpu.l3 = neighbour->l3;
  }
}

/// isolcpus and nohz_full: Documentation/ABI/testing/sysfs-devices-system-cpu, "isolated" and
/// "nohz_full". A kernel that was started without nohz_full says "(null)" or a zero byte there.
base::Result<void> mark_listed(const std::filesystem::path& file, bool Cpu::* mark, Parts& parts) {
  const auto text = base::read_file(file);
  if (is_gone(text)) return {};
  if (!text) return unexpected(text.error());
  if (text->find("(null)") != std::string::npos || text->starts_with('\0')) return {};
  const auto listed = policy::parse_list<policy::CpuTag>(*text);
  if (!listed) return fail(file.string() + ": " + listed.error().reason);
  for (Cpu& cpu : parts.cpus) cpu.*mark = listed->contains(cpu.cpu);
  return {};
}

bool is_in(hwloc_topology_t topology, const hwloc_obj* pu, hwloc_obj_type_t type) {
  return hwloc_get_ancestor_obj_by_type(topology, type, const_cast<hwloc_obj_t>(pu)) != nullptr;
}

LeftOut left_out(hwloc_topology_t topology) {
  LeftOut found;
  for (const hwloc_obj* pu : objects(topology, HWLOC_OBJ_PU)) {
    const bool has_core =
        is_in(topology, pu, HWLOC_OBJ_CORE) && is_in(topology, pu, HWLOC_OBJ_PACKAGE);
    if (!has_core) found.cores.add(id_of(*pu));
    if (!is_in(topology, pu, HWLOC_OBJ_L3CACHE)) found.caches.add(id_of(*pu));
  }
  for (const int node : node_ids(topology)) found.nodes.add(node);
  return found;
}

base::Result<Parts> load_below(const std::filesystem::path& root, hwloc_topology_t topology) {
  if (root == "/") return load(topology);
  const FsRoot fs_root(root);
  return load(topology);
}

/// hwloc reports an invalid file when it loads it, an invalid description at once.
base::Result<Topology> load_and_make(hwloc_topology_t topology, const std::string& where) {
  auto made = load(topology).and_then(make);
  if (!made) return unexpected(base::error_in(where, made.error()));
  return made;
}

bool is_absent(const std::error_code& error) {
  return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
}

/// hwloc reports EINVAL whatever it could not read.
base::Error explain(const base::Error& error, const std::filesystem::path& system_cpu) {
  const auto names = base::list_directory(system_cpu);
  if (!names) return base::error_in("hwloc cannot build a topology", names.error());
  return base::error_in(system_cpu.string(), error);
}

base::Result<Topology> read_trees(const std::filesystem::path& root) {
  const Hwloc topology = new_topology();
  if (!topology) return base::fail_errno(ENOMEM, "cannot initialize hwloc");
  const auto system_cpu = root / "sys/devices/system/cpu";
  std::error_code wrong;
  const bool is_there = std::filesystem::is_directory(system_cpu, wrong);
  if (wrong && !is_absent(wrong)) return base::fail_errno(wrong.value(), system_cpu.string());
  if (!is_there) return fail(root.string() + ": has no sys/devices/system/cpu");
  auto parts = load_below(root, topology.get());
  if (!parts) return unexpected(explain(parts.error(), system_cpu));
  if (auto whole = check_left_out(system_cpu.parent_path(), left_out(topology.get())); !whole) {
    return unexpected(whole.error());
  }
  if (root == "/") {
    if (auto distances = numa_distances(parts->nodes)) parts->distances = std::move(*distances);
  }
  place_offline(system_cpu, *parts);
  for (const auto& [name, mark] :
       {std::pair("isolated", &Cpu::isolated), std::pair("nohz_full", &Cpu::nohz_full)}) {
    if (auto marked = mark_listed(system_cpu / name, mark, *parts); !marked) {
      return unexpected(std::move(marked.error()));
    }
  }
  return make(std::move(*parts));
}

}  // namespace

base::Result<Topology> read_machine(const std::filesystem::path& root) {
  auto machine = read_trees(root);
  // Nobody has written what the kernel says of the machine that we run on: it may read better soon.
  if (!machine && root == "/" && machine.error().code == base::ErrorCode::kInvalid) {
    return base::fail(base::ErrorCode::kTransient, machine.error().message);
  }
  return machine;
}

base::Result<Topology> read_synthetic(const std::string& description) {
  const Hwloc topology = new_topology();
  if (!topology) return base::fail_errno(ENOMEM, "cannot initialize hwloc");
  if (hwloc_topology_set_synthetic(topology.get(), description.c_str()) != 0) {
    return fail("synthetic:" + description +
                ": not a valid hwloc description (example: \"pack:2 numa:2 l3:1 core:4 pu:2\")");
  }
  return load_and_make(topology.get(), "synthetic:" + description);
}

base::Result<Topology> read_xml(const std::filesystem::path& file) {
  const Hwloc topology = new_topology();
  if (!topology) return base::fail_errno(ENOMEM, "cannot initialize hwloc");
  if (hwloc_topology_set_xml(topology.get(), file.c_str()) != 0) {
    return fail(file.string() + ": not an hwloc XML file");
  }
  return load_and_make(topology.get(), file);
}

}  // namespace ka::host
