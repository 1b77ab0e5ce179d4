// SPDX-License-Identifier: Apache-2.0
#include "tests/property/worlds.hpp"

#include <algorithm>
#include <ostream>
#include <utility>
#include <vector>

namespace worlds {
namespace {

using namespace ka::policy;
using namespace ka::policy::plan;

/// Uniform at once: without the resize, early cases would only see the low end.
int any_int(int first, int last) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(first, last + 1));
}

/// True once in `times`; shrinks to false.
bool once_in(int times) { return any_int(0, times - 1) == times - 1; }

template <typename Tag>
IdSet<Tag> any_subset(const IdSet<Tag>& of, int most) {
  std::vector<int> ids = of.ids();
  IdSet<Tag> subset;
  const int first = ids.empty() ? 0 : any_int(0, static_cast<int>(ids.size()) - 1);
  const bool in_a_row = !once_in(3);
  for (int count = any_int(0, most); count > 0 && !ids.empty(); --count) {
    const int last = static_cast<int>(ids.size()) - 1;
    const auto at = in_a_row ? std::min(first, last) : any_int(0, last);
    subset.add(ids[static_cast<std::size_t>(at)]);
    ids.erase(ids.begin() + at);
  }
  return subset;
}

CpuSet any_cpus(const CpuSet& of, int most) { return any_subset(of, most); }

struct Shape {
  int nodes = 1;
  int cores = 1;  // a node
  int threads = 1;
  int stride = 1;           // between CPU numbers
  bool hybrid = false;      // every third core is a slow one with one thread
  bool second_ids = false;  // second threads are numbered after all first ones
};

Shape any_shape() {
  Shape shape;
  shape.nodes = *rc::gen::weightedElement<int>({{6, 1}, {4, 2}, {2, 3}, {2, 4}, {1, 8}, {1, 16}});
  shape.cores = any_int(1, shape.nodes > 4 ? 3 : 8);
  shape.threads = *rc::gen::weightedElement<int>({{3, 1}, {4, 2}, {1, 4}});
  shape.stride = once_in(6) ? any_int(2, 9) : 1;
  shape.hybrid = once_in(6);
  shape.second_ids = !once_in(3);
  return shape;
}

std::vector<Cpu> cpus_of(const Shape& shape) {
  std::vector<Cpu> list;
  const int cores = shape.nodes * shape.cores;
  for (int core = 0; core < cores; ++core) {
    const bool slow = shape.hybrid && core % 3 == 2;
    for (int thread = 0; thread < (slow ? 1 : shape.threads); ++thread) {
      const int rank = shape.second_ids ? thread * cores + core : core * shape.threads + thread;
      const int node = core / shape.cores;
      list.push_back({.cpu = rank * shape.stride,
                      .core = core * 4 + 1,
                      .socket = node / 2,
                      .numa = node * (shape.stride > 1 ? 2 : 1),
                      .l3 = core / 2,
                      .kind = shape.hybrid && !slow ? 1 : 0});
    }
  }
  return list;
}

std::vector<std::vector<int>> any_distances(int nodes) {
  if (!once_in(3)) return {};
  std::vector<std::vector<int>> rows(static_cast<std::size_t>(nodes),
                                     std::vector<int>(static_cast<std::size_t>(nodes), 10));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) rows[i][k] = rows[k][i] = any_int(11, 40);
  }
  return rows;
}

/// Sockets hold two nodes, so a core never spans sockets.
void spoil(std::vector<Cpu>& list) {
  const bool some_offline = once_in(3);
  const bool some_isolated = once_in(3);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (some_offline && i > 0) list[i].online = !once_in(5);
    if (some_isolated) list[i].isolated = once_in(2);
  }
}

Topology any_topology() {
  const Shape shape = any_shape();
  std::vector<Cpu> list = cpus_of(shape);
  spoil(list);
  return Topology::make(std::move(list), any_distances(shape.nodes)).value();
}

std::vector<VcpuFacts> any_vcpus(int count) {
  const int threads = *rc::gen::weightedElement<int>({{4, 1}, {3, 2}, {1, 3}, {1, 4}});
  const int nodes = *rc::gen::weightedElement<int>({{3, 1}, {2, 2}, {1, 3}});
  const int gap = once_in(4) ? any_int(1, 20) : 0;  // hot-plugged from the highest index down
  const int a_node = count / nodes + 1;
  std::vector<VcpuFacts> vcpus;
  for (int i = 0; i < count; ++i) {
    vcpus.push_back({.index = i == 0 ? 0 : i + gap,
                     .socket = i / a_node,
                     .core = i / threads,
                     .thread = i % threads,
                     .numa = i / a_node});
  }
  return vcpus;
}

CpuSet owned_by_anyone(const World& world) {
  CpuSet cpus = world.node.exclusive_elsewhere;
  for (const SandboxFacts& sandbox : world.node.sandboxes) {
    for (const ContainerFacts& container : sandbox.containers) {
      if (container.exclusive) cpus |= container.cpus;
    }
  }
  return cpus;
}

/// Mostly CPUs that are free; now and then some that the pod, or somebody else, has already.
CpuSet any_own_cpus(const World& world, const SandboxFacts& sandbox) {
  const CpuSet& all = world.node.topology.all();
  const CpuSet free = all - owned_by_anyone(world);
  CpuSet cpus = any_cpus(free, once_in(4) ? 12 : 4);
  if (once_in(6)) {
    for (const ContainerFacts& container : sandbox.containers) {
      if (container.exclusive) cpus |= any_cpus(container.cpus, 3);
    }
  }
  if (once_in(12)) cpus |= any_cpus(all, 2);
  return cpus;
}

ContainerFacts any_container(const World& world, const SandboxFacts& sandbox, int number) {
  ContainerFacts container;
  container.id = "c" + std::to_string(number);
  container.name = once_in(5) ? "" : "n" + std::to_string(number);
  container.exclusive = any_int(0, 2) > 0;
  const CpuSet& all = world.node.topology.all();
  if (container.exclusive) {
    container.cpus = any_own_cpus(world, sandbox);
  } else if (!once_in(4)) {
    container.cpus = once_in(3) ? any_cpus(all, 8) : all - owned_by_anyone(world);
  }
  container.exited = once_in(8);
  return container;
}

std::optional<CpuSet> any_cgroup(const Topology& topology, const SandboxFacts& sandbox) {
  if (!once_in(3)) return std::nullopt;
  CpuSet cpus;
  for (const ContainerFacts& container : sandbox.containers) cpus |= container.cpus;
  if (once_in(2)) cpus -= any_cpus(cpus, 2);
  return cpus | any_cpus(topology.all(), 6);
}

/// Shim and virtiofsd outside the sandbox's cgroup, or with version 1 all but the vCPUs.
std::map<Role, CpuSet> any_cgroups_by_role(const Topology& topology, const SandboxFacts& sandbox) {
  std::map<Role, CpuSet> cgroups;
  for (const RoleInfo& info : kRoles) {
    if (goes_with_vcpu(info.role) || !once_in(4)) continue;
    const CpuSet some = any_cgroup(topology, sandbox).value_or(topology.all());
    cgroups[info.role] = some.empty() ? topology.all() : some;
  }
  return cgroups;
}

int owned_count(const SandboxFacts& sandbox) {
  CpuSet cpus;
  for (const ContainerFacts& container : sandbox.containers) {
    if (container.exclusive && !container.exited) cpus |= container.cpus;
  }
  return cpus.size();
}

void plug(SandboxFacts& sandbox) {
  const int owned = owned_count(sandbox);
  const int count = once_in(2) ? owned + any_int(0, 3) : any_int(0, owned + 2);
  sandbox.vcpus = any_vcpus(std::max(count, once_in(20) ? 0 : 1));
}

std::vector<Override> any_overrides(const Topology& topology, const SandboxFacts& sandbox) {
  std::vector<Override> overrides;
  while (once_in(8)) {
    Override given;
    given.role = kRoles[any_int(0, static_cast<int>(std::size(kRoles)) - 1)].role;
    given.cpus = any_cpus(topology.all(), 3);
    const bool vcpu = given.role == Role::kVcpu && !sandbox.vcpus.empty();
    if (vcpu) given.vcpu_index = (*rc::gen::elementOf(sandbox.vcpus)).index;
    if (given.role == Role::kIothread && once_in(2)) given.iothread = "io1";
    overrides.push_back(given);
  }
  return overrides;
}

SandboxFacts any_sandbox(const World& world, int number) {
  SandboxFacts sandbox;
  sandbox.id = "s" + std::to_string(number);
  if (!once_in(5)) sandbox.pod_uid = "p" + std::to_string(number);
  const int containers = any_int(0, 4);
  for (int i = 0; i < containers; ++i) {
    sandbox.containers.push_back(any_container(world, sandbox, i));
  }
  plug(sandbox);
  sandbox.cgroup_cpus = any_cgroup(world.node.topology, sandbox);
  sandbox.cgroup_by_role = any_cgroups_by_role(world.node.topology, sandbox);
  if (once_in(2)) sandbox.iothreads = {"io1", "io2"};
  sandbox.overrides = any_overrides(world.node.topology, sandbox);
  if (once_in(3)) sandbox.devices.push_back({"0000:01:00.0", any_int(-1, 3)});
  return sandbox;
}

Housekeeping any_housekeeping(const Topology& topology) {
  using Kind = Housekeeping::Kind;
  Housekeeping housekeeping;
  housekeeping.kind = *rc::gen::weightedElement<Kind>(
      {{3, Kind::kSandbox}, {3, Kind::kSharedPool}, {2, Kind::kCpus}, {3, Kind::kIsolate}});
  if (housekeeping.kind == Kind::kCpus) housekeeping.cpus = any_cpus(topology.all(), 4);
  return housekeeping;
}

Settings any_settings(const Topology& topology) {
  Settings settings;
  settings.vcpu_pinning = *rc::gen::weightedElement<VcpuPinning>({{6, VcpuPinning::kDedicated},
                                                                  {3, VcpuPinning::kBalanced},
                                                                  {1, VcpuPinning::kMask},
                                                                  {1, VcpuPinning::kNone}});
  settings.housekeeping = any_housekeeping(topology);
  while (once_in(5)) {
    const Role role = *rc::gen::element(Role::kEmulator, Role::kIothread, Role::kVhost,
                                        Role::kVirtiofsd, Role::kShim);
    settings.housekeeping_by_role[role] = any_housekeeping(topology);
  }
  return settings;
}

/// A number that no sandbox or container of the list has.
template <typename Things>
int new_number(const Things& things, char prefix) {
  int number = any_int(0, 9);
  const auto taken = [&](const auto& thing) { return thing.id == prefix + std::to_string(number); };
  while (std::ranges::any_of(things, taken)) ++number;
  return number;
}

template <typename Things>
void sort_by_id(Things& things) {
  std::ranges::sort(things, {}, [](const auto& thing) { return thing.id; });
}

void change_containers(World& world, SandboxFacts& sandbox) {
  auto& containers = sandbox.containers;
  if (containers.empty() || once_in(3)) {
    containers.push_back(any_container(world, sandbox, new_number(containers, 'c')));
  } else {
    const auto at = any_int(0, static_cast<int>(containers.size()) - 1);
    ContainerFacts& container = containers[static_cast<std::size_t>(at)];
    switch (any_int(0, 3)) {
      case 0:
        containers.erase(containers.begin() + at);
        break;
      case 1:
        container.exited = !container.exited;
        break;
      case 2:
        container.cpus -= any_cpus(container.cpus, 2);
        container.cpus |= any_own_cpus(world, sandbox);
        break;
      default:
        container.id = "c" + std::to_string(new_number(containers, 'c'));
    }
  }
  sort_by_id(containers);
}

void change_vcpus(SandboxFacts& sandbox) {
  auto& vcpus = sandbox.vcpus;
  if (vcpus.size() > 1 && once_in(3)) {
    vcpus.erase(vcpus.begin() + any_int(0, static_cast<int>(vcpus.size()) - 1));
  } else {
    const int index = vcpus.empty() ? 0 : vcpus.back().index + any_int(1, 2);
    vcpus.push_back({.index = index, .core = index});
  }
}

void change(World& world) {
  auto& sandboxes = world.node.sandboxes;
  if (sandboxes.empty() || once_in(6)) {
    sandboxes.push_back(any_sandbox(world, new_number(sandboxes, 's')));
    sort_by_id(sandboxes);
    return;
  }
  const auto at = any_int(0, static_cast<int>(sandboxes.size()) - 1);
  SandboxFacts& sandbox = sandboxes[static_cast<std::size_t>(at)];
  if (once_in(8)) {
    sandboxes.erase(sandboxes.begin() + at);
  } else if (once_in(6)) {
    sandbox.cgroup_cpus = any_cgroup(world.node.topology, sandbox);
  } else if (once_in(4)) {
    change_vcpus(sandbox);
  } else {
    change_containers(world, sandbox);
  }
}

void print_sandbox(std::ostream& out, const SandboxFacts& sandbox) {
  out << "  " << sandbox.id << " pod=" << sandbox.pod_uid;
  if (sandbox.cgroup_cpus) out << " cgroup=" << format_list(*sandbox.cgroup_cpus);
  for (const auto& [role, cpus] : sandbox.cgroup_by_role) {
    out << ' ' << role_name(role) << "'s=" << format_list(cpus);
  }
  out << " vcpus(index:socket.core@node)=";
  for (const VcpuFacts& vcpu : sandbox.vcpus) {
    out << vcpu.index << ':' << vcpu.socket << '.' << vcpu.core << '@' << vcpu.numa << ' ';
  }
  out << '\n';
  for (const ContainerFacts& container : sandbox.containers) {
    out << "    " << container.id << " name=" << container.name
        << (container.exclusive ? " exclusive " : " shared ") << format_list(container.cpus)
        << (container.exited ? " exited" : "") << '\n';
  }
  for (const Override& given : sandbox.overrides) {
    out << "    by hand " << role_name(given.role) << ' ' << given.vcpu_index << given.iothread
        << ' ' << format_list(given.cpus) << '\n';
  }
  for (const DeviceFacts& device : sandbox.devices) {
    out << "    device of node " << device.node << '\n';
  }
}

void print_housekeeping(std::ostream& out, const Housekeeping& housekeeping) {
  out << static_cast<int>(housekeeping.kind) << '(' << format_list(housekeeping.cpus) << ')';
}

}  // namespace

rc::Gen<World> any_world(int most) {
  return rc::gen::exec([most] {
    World world;
    world.node.topology = any_topology();
    const CpuSet& all = world.node.topology.all();
    world.settings = any_settings(world.node.topology);
    if (once_in(3)) world.node.exclusive_elsewhere = any_cpus(all, 3);
    if (once_in(3)) world.node.shared_pool = any_cpus(all, 8);
    const int count = any_int(1, most);
    for (int i = 0; i < count; ++i) world.node.sandboxes.push_back(any_sandbox(world, i));
    return world;
  });
}

rc::Gen<World> changed(const World& world) {
  return rc::gen::exec([world] {
    World next = world;
    change(next);
    return next;
  });
}

std::ostream& operator<<(std::ostream& out, const World& world) {
  out << "\ncpu:core@node/l3 (-offline *isolated)";
  for (const Cpu& cpu : world.node.topology.cpus()) {
    out << ' ' << cpu.cpu << ':' << cpu.core << '@' << cpu.numa << '/' << cpu.l3
        << (cpu.online ? "" : "-") << (cpu.isolated ? "*" : "");
  }
  out << "\npool=" << format_list(world.node.shared_pool)
      << " elsewhere=" << format_list(world.node.exclusive_elsewhere)
      << "\npinning=" << static_cast<int>(world.settings.vcpu_pinning) << " housekeeping=";
  print_housekeeping(out, world.settings.housekeeping);
  for (const auto& [role, housekeeping] : world.settings.housekeeping_by_role) {
    out << ' ' << role_name(role) << '=';
    print_housekeeping(out, housekeeping);
  }
  out << '\n';
  for (const SandboxFacts& sandbox : world.node.sandboxes) print_sandbox(out, sandbox);
  return out;
}

}  // namespace worlds
