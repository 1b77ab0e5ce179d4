#include "policy/plan/match.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "policy/plan/closeness.hpp"

namespace ka::policy {
namespace {

/// What still has to be matched of one core: slots of a host core, vCPUs of a guest core.
struct Core {
  std::pair<int, int> id;
  std::vector<std::size_t> members;

  std::size_t size() const { return members.size(); }
};

/// What still has to be matched of one NUMA node.
struct Node {
  int id = 0;
  std::vector<Core> cores;
  std::size_t size = 0;
  int partner = -1;  ///< id of the node on the other side that most of it went to
};

Node& node_in(std::vector<Node>& nodes, int id) {
  const auto found = std::ranges::lower_bound(nodes, id, {}, &Node::id);
  if (found != nodes.end() && found->id == id) return *found;
  return *nodes.insert(found, Node{id, {}, 0, -1});
}

void add_member(Node& node, std::pair<int, int> core, std::size_t member) {
  ++node.size;
  const auto same = std::ranges::find(node.cores, core, &Core::id);
  if (same != node.cores.end()) {
    same->members.push_back(member);
  } else {
    node.cores.push_back({core, {member}});
  }
}

std::pair<int, int> guest_core(const VcpuFacts& vcpu) { return {vcpu.socket, vcpu.core}; }

bool same_container(const ContainerFacts& now, const ContainerPlan& before) {
  return now.name.empty() || before.name.empty() ? now.id == before.id : now.name == before.name;
}

bool floats_freely(const VcpuPlan& vcpu) {
  return vcpu.role == VcpuRole::kFloating && vcpu.container.empty();
}

class Matcher {
 public:
  Matcher(const Topology& topology, const SandboxFacts& sandbox, const Assignment& assignment)
      : topology_(topology),
        sandbox_(sandbox),
        assignment_(assignment),
        free_(sandbox.vcpus.size(), true) {
    for (std::size_t i = 0; i < assignment.holdings.size(); ++i) add_slots(i);
  }

  void keep(const SandboxPlan& previous);
  void reserve_floating();
  void fill();
  void untangle();
  std::vector<Slot> take() { return std::move(slots_); }

 private:
  void add_slots(std::size_t holding);
  void put(Slot& slot, std::size_t vcpu);
  std::size_t position(int index) const;
  bool served_before(const Slot& slot, const SandboxPlan& previous, int index) const;
  void release_makeshift(const SandboxPlan& previous);
  void keep_pairs(const SandboxPlan& previous);
  void keep_members(const SandboxPlan& previous);
  void keep_members_of(const ContainerFacts& container, std::size_t holding,
                       const SandboxPlan& previous);
  void gather();
  void find_partners();
  std::pair<Node*, Node*> best_nodes();
  void pack(Node& guest, Node& host);
  void place(Core& guest, Core& host);
  void untangle(std::size_t holding);

  const Topology& topology_;
  const SandboxFacts& sandbox_;
  const Assignment& assignment_;
  std::vector<Slot> slots_;  ///< by holding
  std::vector<bool> free_;   ///< by position of the vCPU
  std::size_t released_ = kNoVcpu;
  std::vector<Node> guests_, hosts_;  ///< by id
};

/// Core by core, so that a group sits on as few cores as it can.
void Matcher::add_slots(std::size_t holding) {
  const Holding& held = assignment_.holdings[holding];
  std::vector<Slot> places;
  for (const int id : held.usable) {
    const Cpu& cpu = *topology_.find(id);
    places.push_back({holding, id, cpu.core, cpu.numa, kNoVcpu});
  }
  if (!held.dedicated()) {
    std::ranges::stable_sort(places, {}, [&](const Slot& slot) {
      return (topology_.core_cpus(slot.core) & held.usable).first();
    });
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(held.vcpus); ++i) {
    slots_.push_back(places[i % places.size()]);
  }
}

void Matcher::put(Slot& slot, std::size_t vcpu) {
  slot.vcpu = vcpu;
  free_[vcpu] = false;
}

std::size_t Matcher::position(int index) const {
  const auto found = std::ranges::lower_bound(sandbox_.vcpus, index, {}, &VcpuFacts::index);
  if (found == sandbox_.vcpus.end() || found->index != index) return kNoVcpu;
  return static_cast<std::size_t>(found - sandbox_.vcpus.begin());
}

bool Matcher::served_before(const Slot& slot, const SandboxPlan& previous, int index) const {
  const auto& owners = assignment_.holdings[slot.holding].owners;
  return std::ranges::any_of(owners, [&](std::size_t owner) {
    return std::ranges::any_of(previous.containers, [&](const ContainerPlan& before) {
      return before.vcpus.contains(index) && same_container(sandbox_.containers[owner], before);
    });
  });
}

void Matcher::keep(const SandboxPlan& previous) {
  release_makeshift(previous);
  keep_pairs(previous);
  keep_members(previous);
}

void Matcher::release_makeshift(const SandboxPlan& previous) {
  if (assignment_.floating == 0 || sandbox_.vcpus.empty()) return;
  if (std::ranges::none_of(previous.vcpus, floats_freely)) released_ = 0;
}

void Matcher::keep_pairs(const SandboxPlan& previous) {
  std::vector<std::pair<int, int>> vcpu_of;  // by CPU
  for (const VcpuPlan& vcpu : previous.vcpus) {
    if (vcpu.role == VcpuRole::kDedicated) vcpu_of.emplace_back(vcpu.cpus.first(), vcpu.index);
  }
  std::ranges::sort(vcpu_of);
  for (Slot& slot : slots_) {
    if (!assignment_.holdings[slot.holding].dedicated()) continue;
    const auto pair = std::ranges::lower_bound(vcpu_of, slot.cpu, {}, &std::pair<int, int>::first);
    if (pair == vcpu_of.end() || pair->first != slot.cpu) continue;
    const std::size_t vcpu = position(pair->second);
    if (vcpu == kNoVcpu || vcpu == released_ || !free_[vcpu]) continue;
    if (served_before(slot, previous, pair->second)) put(slot, vcpu);
  }
}

void Matcher::keep_members(const SandboxPlan& previous) {
  for (std::size_t i = 0; i < assignment_.holdings.size(); ++i) {
    for (const std::size_t owner : assignment_.holdings[i].owners) {
      keep_members_of(sandbox_.containers[owner], i, previous);
    }
  }
}

void Matcher::keep_members_of(const ContainerFacts& container, std::size_t holding,
                              const SandboxPlan& previous) {
  const auto before = std::ranges::find_if(previous.containers, [&](const ContainerPlan& plan) {
    return same_container(container, plan);
  });
  if (before == previous.containers.end()) return;
  const auto open = [&](const Slot& s) { return s.holding == holding && s.vcpu == kNoVcpu; };
  for (const int index : before->vcpus) {
    const std::size_t vcpu = position(index);
    if (vcpu == kNoVcpu || vcpu == released_ || !free_[vcpu]) continue;
    const VcpuPlan* plan = previous.find_vcpu(index);
    if (plan == nullptr || plan->container.empty()) continue;
    const auto slot = std::ranges::find_if(slots_, open);
    if (slot == slots_.end()) return;
    put(*slot, vcpu);
  }
}

/// The guest boots on its first vCPU and its kernel does most of its work there, so that one is
/// the best to float; the vCPUs of its core would feel it most.
void Matcher::reserve_floating() {
  int wanted = assignment_.floating;
  const auto lowest = std::ranges::find(free_, true);
  if (wanted == 0 || lowest == free_.end()) return;
  const auto first = static_cast<std::size_t>(lowest - free_.begin());
  const auto core = guest_core(sandbox_.vcpus[first]);
  for (std::size_t i = first; i < free_.size() && wanted > 0; ++i) {
    if (!free_[i] || guest_core(sandbox_.vcpus[i]) != core) continue;
    free_[i] = false;
    --wanted;
  }
}

void Matcher::gather() {
  for (std::size_t i = 0; i < free_.size(); ++i) {
    const VcpuFacts& vcpu = sandbox_.vcpus[i];
    if (free_[i]) add_member(node_in(guests_, vcpu.numa), guest_core(vcpu), i);
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.vcpu == kNoVcpu) add_member(node_in(hosts_, slot.node), {slot.core, 0}, i);
  }
}

/// Guest nodes that have vCPUs in their places already stay with the host node of most of them.
void Matcher::find_partners() {
  for (Node& guest : guests_) {
    std::vector<std::pair<int, int>> counts;  // host node, minus its vCPUs
    for (const Slot& slot : slots_) {
      if (slot.vcpu == kNoVcpu || sandbox_.vcpus[slot.vcpu].numa != guest.id) continue;
      const auto same = std::ranges::find(counts, slot.node, &std::pair<int, int>::first);
      same == counts.end() ? counts.emplace_back(slot.node, -1).second : --same->second;
    }
    const auto most = std::ranges::min_element(
        counts, {}, [](const auto& count) { return std::pair(count.second, count.first); });
    if (most == counts.end()) continue;
    guest.partner = most->first;
    const auto host = std::ranges::find(hosts_, most->first, &Node::id);
    if (host != hosts_.end() && host->partner < 0) host->partner = guest.id;
  }
}

/// Partners first, then guest nodes without a partner on host nodes without one, the larger the
/// better; what is left over goes to the nearest node.
std::pair<Node*, Node*> Matcher::best_nodes() {
  using Rank = std::tuple<int, int, bool, long>;
  std::pair<Node*, Node*> best{nullptr, nullptr};
  Rank best_rank{std::numeric_limits<int>::max(), 0, false, 0};
  for (Node& guest : guests_) {
    for (Node& host : hosts_) {
      const std::size_t common = std::min(guest.size, host.size);
      if (common == 0) continue;
      const bool partners = guest.partner == host.id;
      const bool new_guest = guest.partner < 0;
      const bool new_host = host.partner < 0;
      const int distance = partners || new_guest ? 0 : topology_.distance(guest.partner, host.id);
      const int tier = partners ? 0 : new_guest && new_host ? 1 : new_guest ? 2 : 3;
      const Rank rank{tier, distance, !new_host, -static_cast<long>(common)};
      if (rank >= best_rank) continue;
      best_rank = rank;
      best = {&guest, &host};
    }
  }
  return best;
}

void Matcher::fill() {
  gather();
  find_partners();
  for (auto [guest, host] = best_nodes(); guest != nullptr; std::tie(guest, host) = best_nodes()) {
    if (guest->partner < 0) guest->partner = host->id;
    if (host->partner < 0) host->partner = guest->id;
    pack(*guest, *host);
  }
}

/// The largest guest core that fits on one host core, on the tightest such host core; when none
/// fits, the smallest is broken over the roomiest. Single vCPUs go to the first slot.
void Matcher::pack(Node& guest, Node& host) {
  while (guest.size > 0 && host.size > 0) {
    const std::size_t room = std::ranges::max_element(host.cores, {}, &Core::size)->size();
    const auto whole = std::ranges::max_element(
        guest.cores, {}, [&](const Core& core) { return core.size() > room ? 0 : core.size(); });
    Core& from =
        whole->size() <= room ? *whole : *std::ranges::min_element(guest.cores, {}, &Core::size);
    const std::size_t need = std::min(from.size(), room);
    Core& to = *std::ranges::min_element(host.cores, {}, [&](const Core& core) {
      const bool fits = core.size() >= need;
      return std::tuple(!fits, need == 1 ? 0 : core.size(), core.members.front());
    });
    const std::size_t placed = std::min(from.size(), to.size());
    place(from, to);
    guest.size -= placed;
    host.size -= placed;
    std::erase_if(guest.cores, [](const Core& core) { return core.members.empty(); });
    std::erase_if(host.cores, [](const Core& core) { return core.members.empty(); });
  }
}

void Matcher::place(Core& guest, Core& host) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(guest.size(), host.size()));
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    put(slots_[host.members[at]], guest.members[at]);
  }
  guest.members.erase(guest.members.begin(), guest.members.begin() + count);
  host.members.erase(host.members.begin(), host.members.begin() + count);
}

/// Where keeping what was, or the lack of room, has left guest siblings apart, vCPUs of the same
/// container change places as long as that brings more of them together.
void Matcher::untangle() {
  for (std::size_t i = 0; i < assignment_.holdings.size(); ++i) {
    if (assignment_.holdings[i].dedicated()) untangle(i);
  }
}

void Matcher::untangle(std::size_t holding) {
  std::vector<Slot*> own;
  std::vector<Seat> seats;
  for (Slot& slot : slots_) {
    if (slot.holding != holding) continue;
    own.push_back(&slot);
    seats.push_back({&sandbox_.vcpus[slot.vcpu], topology_.find(slot.cpu)});
  }
  Closeness closeness(seats);
  for (bool again = closeness.matters(); again;) {
    again = false;
    for (std::size_t i = 0; i < own.size(); ++i) {
      for (std::size_t j = i + 1; j < own.size(); ++j) {
        if (!closeness.better_swapped(i, j)) continue;
        closeness.swap(i, j);
        std::swap(own[i]->vcpu, own[j]->vcpu);
        again = true;
      }
    }
  }
}

}  // namespace

std::vector<Slot> match(const Topology& topology, const SandboxFacts& sandbox,
                        const Assignment& assignment, const SandboxPlan* previous) {
  Matcher matcher(topology, sandbox, assignment);
  if (previous != nullptr) matcher.keep(*previous);
  matcher.reserve_floating();
  matcher.fill();
  matcher.untangle();
  return matcher.take();
}

std::size_t lowest_owned_vcpu(const Assignment& assignment, const std::vector<Slot>& slots) {
  const auto rank = [&](const Slot& slot) {
    const Holding& holding = assignment.holdings[slot.holding];
    const bool dedicated = holding.dedicated();
    return std::tuple(dedicated ? slot.cpu : holding.usable.first(), slot.vcpu);
  };
  const auto lowest = std::ranges::min_element(slots, {}, rank);
  return lowest == slots.end() ? kNoVcpu : lowest->vcpu;
}

}  // namespace ka::policy
