// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "policy/plan/invariants.hpp"
#include "policy/plan/plan.hpp"
#include "tests/node_invariants.hpp"
#include "tests/property/property.hpp"
#include "tests/property/worlds.hpp"

using namespace ka::policy;
using namespace ka::policy::plan;
using worlds::World;

namespace {

void log(const World& world, const Plan& plan) {
  std::ostringstream text;
  text << world;
  for (const SandboxPlan& sandbox : plan.sandboxes) {
    text << "  plan of " << sandbox.id << ':';
    for (const VcpuPlan& vcpu : sandbox.vcpus) {
      text << ' ' << vcpu.index << '=' << format_list(vcpu.cpus)
           << (vcpu.role == VcpuRole::kDedicated ? "!" : "") << vcpu.container;
    }
    text << " housekeeping=" << format_list(sandbox.housekeeping) << '\n';
  }
  RC_LOG() << text.str();
}

void no_violation(const World& world, const Plan& plan) {
  for (const Violation& violation : ka::tests::check_node(world.node, world.settings, plan)) {
    log(world, plan);
    RC_LOG() << "I" << invariant_of(violation.breach) << ' ' << breach_name(violation.breach) << ' '
             << violation.sandbox << ' ' << violation.subject << ' ' << format_list(violation.cpus)
             << '\n';
    RC_FAIL("an invariant is broken");
  }
}

bool pins(const Settings& settings) {
  return settings.vcpu_pinning == VcpuPinning::kDedicated ||
         settings.vcpu_pinning == VcpuPinning::kBalanced;
}

bool isolates(const Settings& settings) {
  const auto isolate = [](const Housekeeping& h) { return h.kind == Housekeeping::Kind::kIsolate; };
  return isolate(settings.housekeeping) ||
         std::ranges::any_of(settings.housekeeping_by_role,
                             [&](auto& o) { return isolate(o.second); });
}

CpuSet usable_by(const World& world, const NodeView& view, const SandboxFacts& facts) {
  CpuSet usable = world.node.topology.online() - view.exclusive_to_others;
  if (facts.cgroup_cpus) usable &= *facts.cgroup_cpus;
  return usable;
}

CpuSet owned_by(const SandboxFacts& facts) {
  CpuSet owned;
  for (const ContainerFacts& container : facts.containers) {
    if (container.exclusive && !container.exited) owned |= container.cpus;
  }
  return owned;
}

/// Everything of a plan that may not depend on what was before: all but which vCPU it is, and with
/// "balanced" where those float that stay.
struct Outline {
  SandboxPlan rest;
  std::vector<std::tuple<VcpuRole, std::string, std::vector<int>>> vcpus;

  bool operator==(const Outline&) const = default;
};

/// It may use none of its CPUs for now; vCPUs that served it before float, held for it.
bool waits(const SandboxPlan& plan, const std::string& container) {
  return std::ranges::any_of(plan.warnings, [&](const Note& note) {
    return note.code == Code::kNoUsableCpu && note.subject == container;
  });
}

Outline outline(SandboxPlan plan, bool balanced) {
  Outline result;
  for (const VcpuPlan& vcpu : plan.vcpus) {
    const std::string owner = waits(plan, vcpu.container) ? "" : vcpu.container;
    const bool stays = balanced && vcpu.role == VcpuRole::kFloating && vcpu.cpus.size() == 1;
    result.vcpus.emplace_back(vcpu.role, owner, stays ? std::vector<int>{} : vcpu.cpus.ids());
  }
  const bool any_waits = std::ranges::any_of(
      plan.containers, [&](const ContainerPlan& container) { return waits(plan, container.id); });
  if (any_waits || balanced) plan.interrupts.clear();
  std::ranges::sort(result.vcpus);
  plan.vcpus.clear();
  for (ContainerPlan& container : plan.containers) {
    container.vcpus = any_waits ? VcpuSet{} : VcpuSet::range(1, container.vcpus.size());
  }
  std::erase_if(plan.reasons, [](const Note& n) { return n.code == Code::kKeptFromBefore; });
  for (auto* notes : {&plan.reasons, &plan.warnings}) {
    for (Note& note : *notes) {
      note.number = 0;
      if (balanced && note.code == Code::kFloating) note.cpus = {};
    }
  }
  result.rest = std::move(plan);
  return result;
}

/// The same container, or the one that it was made again for.
const ContainerPlan* find_container(const SandboxPlan& plan, const ContainerPlan& like) {
  const auto same = std::ranges::find(plan.containers, like.id, &ContainerPlan::id);
  if (same != plan.containers.end()) return &*same;
  const auto found = std::ranges::find(plan.containers, like.name, &ContainerPlan::name);
  return like.name.empty() || found == plan.containers.end() ? nullptr : &*found;
}

bool names_are_unique(const SandboxFacts& facts) {
  for (const ContainerFacts& one : facts.containers) {
    for (const ContainerFacts& other : facts.containers) {
      if (&one != &other && !one.name.empty() && one.name == other.name) return false;
    }
  }
  return true;
}

/// CPU -> vCPU of a container's dedicated vCPUs.
std::map<int, int> pairs_of(const SandboxPlan& plan, const ContainerPlan& container) {
  std::map<int, int> pairs;
  for (const int index : container.vcpus) {
    const VcpuPlan* vcpu = plan.find_vcpu(index);
    if (vcpu->role == VcpuRole::kDedicated) pairs[vcpu->cpus.first()] = index;
  }
  return pairs;
}

bool has_floating(const SandboxPlan& plan) {
  return std::ranges::any_of(plan.vcpus, [](const VcpuPlan& v) { return v.container.empty(); });
}

std::map<int, int> values_only(const std::map<int, int>& pairs) {
  std::map<int, int> values;
  for (const auto& [cpu, vcpu] : pairs) values[vcpu] = 0;
  return values;
}

CpuSet keys_of(const std::map<int, int>& pairs) {
  CpuSet keys;
  for (const auto& [cpu, vcpu] : pairs) keys.add(cpu);
  return keys;
}

bool overlap(const SandboxFacts& facts) {
  CpuSet seen;
  for (const ContainerFacts& container : facts.containers) {
    if (!container.exclusive || container.exited) continue;
    if (container.cpus.intersects(seen)) return true;
    seen |= container.cpus;
  }
  return false;
}

/// I6 for one sandbox: containers whose dedicated CPUs are the same have the same vCPUs on them.
void kept(const SandboxFacts& old_facts, const SandboxFacts& facts, const SandboxPlan& before,
          const SandboxPlan& after) {
  if (!has_floating(before) && has_floating(after)) return;  // the makeshift is given up
  if (!facts.overrides.empty() || !names_are_unique(facts)) return;
  for (const ContainerPlan& container : after.containers) {
    const ContainerPlan* old = find_container(before, container);
    if (old == nullptr || !old->dedicated || !container.dedicated) continue;
    const auto was = pairs_of(before, *old);
    const auto is = pairs_of(after, container);
    if (keys_of(was) != keys_of(is)) continue;
    const bool plugged = std::ranges::all_of(
        old->vcpus, [&](int index) { return after.find_vcpu(index) != nullptr; });
    if (!plugged) continue;
    if (overlap(old_facts) || overlap(facts)) {
      RC_ASSERT(values_only(was) == values_only(is));
    } else {
      RC_ASSERT(was == is);
    }
  }
}

const SandboxFacts* find_facts(const Snapshot& node, const std::string& id) {
  const auto found = std::ranges::find(node.sandboxes, id, &SandboxFacts::id);
  return found == node.sandboxes.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("no plan breaks an invariant") {
  property::holds("for any node, the checker finds nothing", [] {
    const World world = *worlds::any_world(4);
    no_violation(world, plan::plan(world.node, world.settings, nullptr));
  });
}

// The same said once more without the checker, so that it cannot be blind to what the plan is
// blind to.
TEST_CASE("threads stay off CPUs of others, and dedicated vCPUs are alone on theirs") {
  property::holds("I2, I3, I4 in their plainest words", [] {
    const World world = *worlds::any_world(4);
    const Plan made = plan::plan(world.node, world.settings, nullptr);
    log(world, made);
    const auto views = node_views(world.node);
    CpuSet taken;
    for (std::size_t i = 0; i < made.sandboxes.size(); ++i) {
      const SandboxPlan& sandbox = made.sandboxes[i];
      CpuSet dedicated;
      for (const VcpuPlan& vcpu : sandbox.vcpus) {
        RC_ASSERT(!vcpu.cpus.intersects(views[i].exclusive_to_others));
        RC_ASSERT(vcpu.cpus.subset_of(world.node.topology.online()));
        if (vcpu.role != VcpuRole::kDedicated) continue;
        RC_ASSERT(vcpu.cpus.size() == 1);
        RC_ASSERT(!taken.intersects(vcpu.cpus));
        taken |= vcpu.cpus;
        dedicated |= vcpu.cpus;
      }
      for (const RoleInfo& info : kRoles) {
        const CpuSet& set = sandbox.roles[info.role];
        RC_ASSERT(!set.intersects(views[i].exclusive_to_others));
        const bool alone = !set.intersects(dedicated);
        const bool said = std::ranges::any_of(
            sandbox.warnings, [](const Note& note) { return note.code == Code::kNotIsolated; });
        RC_ASSERT(alone || said || !world.node.sandboxes[i].overrides.empty());
      }
    }
  });
}

TEST_CASE("an exclusive container gets a vCPU for each CPU whenever the VM has them") {
  property::holds("I4 by counting", [] {
    World world = *worlds::any_world(3);
    for (SandboxFacts& sandbox : world.node.sandboxes) sandbox.overrides.clear();
    if (!pins(world.settings)) world.settings.vcpu_pinning = VcpuPinning::kDedicated;
    if (isolates(world.settings)) world.settings = {};
    const Plan made = plan::plan(world.node, world.settings, nullptr);
    log(world, made);
    const auto views = node_views(world.node);
    for (std::size_t i = 0; i < made.sandboxes.size(); ++i) {
      const SandboxFacts& facts = world.node.sandboxes[i];
      const CpuSet usable = usable_by(world, views[i], facts);
      const CpuSet owned = owned_by(facts) & usable;
      for (const ContainerPlan& container : made.sandboxes[i].containers) {
        const auto own = std::ranges::find(facts.containers, container.id, &ContainerFacts::id);
        if (!own->exclusive || own->cpus.empty()) continue;
        const bool served = keys_of(pairs_of(made.sandboxes[i], container)) == own->cpus;
        RC_ASSERT(container.dedicated == served);
        const bool enough = static_cast<int>(facts.vcpus.size()) >= owned.size();
        RC_ASSERT(!enough || served == own->cpus.subset_of(usable));
      }
    }
  });
}

TEST_CASE("one vCPU floats as soon as there are more than owned CPUs") {
  property::holds("the guest kernel and shared containers have a place", [] {
    const World world = *worlds::any_world(3);
    const Plan made = plan::plan(world.node, world.settings, nullptr);
    const auto views = node_views(world.node);
    log(world, made);
    for (std::size_t i = 0; i < made.sandboxes.size(); ++i) {
      const SandboxFacts& facts = world.node.sandboxes[i];
      const CpuSet owned = owned_by(facts) & usable_by(world, views[i], facts);
      const auto vcpus = static_cast<int>(made.sandboxes[i].vcpus.size());
      RC_ASSERT(vcpus <= owned.size() || has_floating(made.sandboxes[i]));
    }
  });
}

TEST_CASE("interrupts go to the vCPUs nearest to their device, never to another pod") {
  property::holds("where a device's interrupts go", [] {
    const World world = *worlds::any_world(3);
    const Plan made = plan::plan(world.node, world.settings, nullptr);
    const auto views = node_views(world.node);
    log(world, made);
    for (std::size_t i = 0; i < made.sandboxes.size(); ++i) {
      const SandboxPlan& sandbox = made.sandboxes[i];
      CpuSet vcpus, serving;
      for (const VcpuPlan& vcpu : sandbox.vcpus) {
        if (vcpu.placed) vcpus |= vcpu.cpus;
        if (!vcpu.container.empty()) serving |= vcpu.cpus;
      }
      RC_ASSERT(sandbox.interrupts.empty() ==
                (vcpus.empty() || world.node.sandboxes[i].devices.empty()));
      for (const auto& [device, cpus] : sandbox.interrupts) {
        RC_ASSERT(!cpus.empty() && cpus.subset_of(serving.empty() ? vcpus : serving));
        RC_ASSERT(!cpus.intersects(views[i].exclusive_to_others));
        const int node = world.node.sandboxes[i].devices.front().node;
        const CpuSet there = world.node.topology.node_cpus(node);
        RC_ASSERT(cpus.subset_of(there) || !cpus.intersects(there));
      }
    }
  });
}

TEST_CASE("no thread floats over several isolated CPUs") {
  property::holds("isolated CPUs are given out one by one", [] {
    World world = *worlds::any_world(2);
    for (SandboxFacts& sandbox : world.node.sandboxes) sandbox.overrides.clear();
    const Plan made = plan::plan(world.node, world.settings, nullptr);
    log(world, made);
    for (const SandboxPlan& sandbox : made.sandboxes) {
      for (const Placement& placement : placements_of(sandbox)) {
        if (placement.cpus.size() < 2) continue;
        RC_ASSERT(!placement.cpus.intersects(world.node.topology.isolated()));
      }
    }
  });
}

/// Sandboxes that share CPUs among each other, some with more choice than others.
void only_shared(World& world) {
  world.settings = {};
  world.node.exclusive_elsewhere = {};
  const std::vector<int> cpus = world.node.topology.online().ids();
  for (SandboxFacts& sandbox : world.node.sandboxes) {
    sandbox.cgroup_cpus.reset();
    const auto most = std::min<std::size_t>(cpus.size(), 6);
    const auto count = *rc::gen::inRange<std::size_t>(1, most + 1);
    CpuSet some;
    for (std::size_t i = 0; i < count; ++i) some.add(cpus[i]);
    sandbox.containers = {{.id = "c", .name = "n", .cpus = some}};
  }
}

namespace {

/// No two floating vCPUs have one CPU while another one is empty.
void is_spread(const Plan& made) {
  std::map<int, int> load;
  for (const SandboxPlan& sandbox : made.sandboxes) {
    for (const VcpuPlan& vcpu : sandbox.vcpus) {
      if (vcpu.container.empty()) {
        RC_ASSERT(vcpu.cpus.size() == 1 || sandbox.housekeeping.empty());
      }
      if (vcpu.role == VcpuRole::kFloating && vcpu.cpus.size() == 1) ++load[vcpu.cpus.first()];
    }
  }
  for (const SandboxPlan& sandbox : made.sandboxes) {
    const bool room =
        std::ranges::any_of(sandbox.housekeeping, [&load](int cpu) { return !load.contains(cpu); });
    for (const VcpuPlan& vcpu : sandbox.vcpus) {
      if (!vcpu.container.empty() || vcpu.cpus.empty()) continue;
      RC_ASSERT(!room || load[vcpu.cpus.first()] == 1);
    }
  }
}

}  // namespace

TEST_CASE("balanced puts no two floating vCPUs on one CPU while another is empty") {
  property::holds("floating vCPUs of all sandboxes are spread over housekeeping", [] {
    World world = *worlds::any_world(4);
    if (*rc::gen::arbitrary<bool>()) only_shared(world);
    world.settings.vcpu_pinning = VcpuPinning::kBalanced;
    for (SandboxFacts& sandbox : world.node.sandboxes) sandbox.overrides.clear();
    const Plan made = plan::plan(world.node, world.settings, nullptr);
    log(world, made);
    is_spread(made);
    world = *worlds::changed(world);
    world.settings.vcpu_pinning = VcpuPinning::kBalanced;
    for (SandboxFacts& sandbox : world.node.sandboxes) sandbox.overrides.clear();
    const Plan next = plan::plan(world.node, world.settings, &made);
    log(world, next);
    is_spread(next);
  });
}

TEST_CASE("applying a plan twice changes nothing") {
  property::holds("planning from one's own plan gives it again, byte for byte", [] {
    const World world = *worlds::any_world(3);
    const Plan first = plan::plan(world.node, world.settings, nullptr);
    log(world, first);
    RC_ASSERT(plan::plan(world.node, world.settings, nullptr) == first);
    RC_ASSERT(plan::plan(world.node, world.settings, &first) == first);
  });
}

TEST_CASE("history changes only which vCPU serves a CPU") {
  property::holds("I6 and I7 over random histories", [] {
    World world = *worlds::any_world(3);
    Plan previous = plan::plan(world.node, world.settings, nullptr);
    const int steps = *rc::gen::inRange(1, 9);
    for (int i = 0; i < steps; ++i) {
      const Snapshot old = world.node;
      log(world, previous);
      world = *worlds::changed(world);
      const Plan next = plan::plan(world.node, world.settings, &previous);
      log(world, next);
      no_violation(world, next);
      RC_ASSERT(plan::plan(world.node, world.settings, &next) == next);
      const Plan fresh = plan::plan(world.node, world.settings, nullptr);
      for (const SandboxPlan& sandbox : next.sandboxes) {
        if (find_facts(world.node, sandbox.id)->overrides.empty()) {
          const bool balanced = world.settings.vcpu_pinning == VcpuPinning::kBalanced;
          RC_ASSERT(outline(sandbox, balanced) == outline(*fresh.find(sandbox.id), balanced));
        }
        const SandboxPlan* before = previous.find(sandbox.id);
        const bool same_pod = before != nullptr && before->pod_uid == sandbox.pod_uid;
        if (!same_pod || !pins(world.settings)) continue;
        kept(*find_facts(old, sandbox.id), *find_facts(world.node, sandbox.id), *before, sandbox);
      }
      previous = next;
    }
  });
}

TEST_CASE("a neighbour that owns nothing new changes nothing") {
  property::holds("planning is per sandbox", [] {
    World world = *worlds::any_world(2);
    if (world.settings.vcpu_pinning == VcpuPinning::kBalanced) world.settings = {};
    const Plan before = plan::plan(world.node, world.settings, nullptr);
    SandboxFacts guest;
    guest.id = "zz";
    guest.containers.push_back({.id = "x", .cpus = world.node.topology.online()});
    guest.vcpus.push_back({});
    world.node.sandboxes.push_back(guest);
    const Plan after = plan::plan(world.node, world.settings, &before);
    log(world, after);
    for (const SandboxPlan& sandbox : before.sandboxes) {
      RC_ASSERT(*after.find(sandbox.id) == sandbox);
    }
  });
}
