// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/fit.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "policy/plan/closeness.hpp"

namespace ka::policy::plan {
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

class Fitter {
 public:
  Fitter(const Topology& topology, const std::vector<VcpuFacts>& vcpus,
         const std::vector<bool>& free, std::vector<Slot>& slots)
      : topology_(topology), vcpus_(vcpus), free_(free), slots_(slots) {}

  void fill();

 private:
  void gather();
  void find_partners();
  std::pair<Node*, Node*> best_nodes(bool whole);
  void fill(bool whole);
  void place_core(Core& guest, Node& host);
  void place(Core& guest, Core& host);

  const Topology& topology_;
  const std::vector<VcpuFacts>& vcpus_;
  const std::vector<bool>& free_;
  std::vector<Slot>& slots_;
  std::vector<Node> guests_, hosts_;  ///< by id
};

void Fitter::gather() {
  for (std::size_t i = 0; i < free_.size(); ++i) {
    const VcpuFacts& vcpu = vcpus_[i];
    if (free_[i]) add_member(node_in(guests_, vcpu.numa), guest_core(vcpu), i);
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.vcpu == kUnserved) add_member(node_in(hosts_, slot.node), {slot.core, 0}, i);
  }
}

/// Guest nodes that have vCPUs in their places already stay with the host node of most of them.
void Fitter::find_partners() {
  for (Node& guest : guests_) {
    std::map<int, int> counts;  // by host node
    for (const Slot& slot : slots_) {
      if (slot.vcpu != kUnserved && vcpus_[slot.vcpu].numa == guest.id) ++counts[slot.node];
    }
    const auto most =
        std::ranges::max_element(counts, {}, [](auto& entry) { return entry.second; });
    if (most == counts.end()) continue;
    guest.partner = most->first;
    const auto host = std::ranges::find(hosts_, most->first, &Node::id);
    if (host != hosts_.end() && host->partner < 0) host->partner = guest.id;
  }
}

/// The guest core to place next on a host node: the largest that fits on one of its cores, else the
/// smallest. `whole`: none that does not fit on the node.
Core* next_core(Node& guest, const Node& host, bool whole) {
  if (guest.size == 0 || host.size == 0) return nullptr;
  const std::size_t room = std::ranges::max_element(host.cores, {}, &Core::size)->size();
  const auto fitting = [&](const Core& core) { return core.size() > room ? 0 : core.size(); };
  const auto largest = std::ranges::max_element(guest.cores, {}, fitting);
  if (largest->size() <= room) return &*largest;
  const auto smallest = std::ranges::min_element(guest.cores, {}, &Core::size);
  return whole && smallest->size() > host.size ? nullptr : &*smallest;
}

/// Partners first, then guest nodes without a partner on host nodes without one, the larger the
/// better; what is left over goes to the nearest node.
std::pair<Node*, Node*> Fitter::best_nodes(bool whole) {
  using Rank = std::tuple<int, int, bool, long>;
  std::pair<Node*, Node*> best{nullptr, nullptr};
  Rank best_rank{std::numeric_limits<int>::max(), 0, false, 0};
  for (Node& guest : guests_) {
    for (Node& host : hosts_) {
      if (next_core(guest, host, whole) == nullptr) continue;
      const auto common = static_cast<long>(std::min(guest.size, host.size));
      const bool partners = guest.partner == host.id;
      const bool new_guest = guest.partner < 0;
      const bool new_host = host.partner < 0;
      const int distance = partners || new_guest ? 0 : topology_.distance(guest.partner, host.id);
      const int tier = partners ? 0 : new_guest && new_host ? 1 : new_guest ? 2 : 3;
      const Rank rank{tier, distance, !new_host, -common};
      if (rank >= best_rank) continue;
      best_rank = rank;
      best = {&guest, &host};
    }
  }
  return best;
}

/// First the guest cores that can stay within one host node, then those that have to be divided.
void Fitter::fill() {
  gather();
  find_partners();
  fill(/*whole=*/true);
  fill(/*whole=*/false);
}

void Fitter::fill(bool whole) {
  for (auto [guest, host] = best_nodes(whole); guest != nullptr;
       std::tie(guest, host) = best_nodes(whole)) {
    if (guest->partner < 0) guest->partner = host->id;
    if (host->partner < 0) host->partner = guest->id;
    while (Core* core = next_core(*guest, *host, whole)) {
      const std::size_t before = core->size();
      place_core(*core, *host);
      guest->size -= before - core->size();
      host->size -= before - core->size();
      std::erase_if(guest->cores, [](const Core& c) { return c.members.empty(); });
    }
  }
}

/// On the tightest host core that holds it; where none does, over the roomiest ones. A single vCPU
/// goes to the first slot.
void Fitter::place_core(Core& guest, Node& host) {
  while (guest.size() > 0 && !host.cores.empty()) {
    const std::size_t room = std::ranges::max_element(host.cores, {}, &Core::size)->size();
    const std::size_t need = std::min(guest.size(), room);
    Core& to = *std::ranges::min_element(host.cores, {}, [&](const Core& core) {
      const bool fits = core.size() >= need;
      return std::tuple(!fits, need == 1 ? 0 : core.size(), core.members.front());
    });
    place(guest, to);
    std::erase_if(host.cores, [](const Core& core) { return core.members.empty(); });
  }
}

void Fitter::place(Core& guest, Core& host) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(guest.size(), host.size()));
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    slots_[host.members[at]].vcpu = guest.members[at];
  }
  guest.members.erase(guest.members.begin(), guest.members.begin() + count);
  host.members.erase(host.members.begin(), host.members.begin() + count);
}

}  // namespace

void fit(const Topology& topology, const std::vector<VcpuFacts>& vcpus,
         const std::vector<bool>& free, std::vector<Slot>& slots) {
  Fitter(topology, vcpus, free, slots).fill();
}

}  // namespace ka::policy::plan
