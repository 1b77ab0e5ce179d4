// SPDX-License-Identifier: Apache-2.0
#include "policy/managed/books.hpp"

#include <algorithm>
#include <utility>

#include "policy/allocate/allocate.hpp"

namespace ka::policy::managed {
namespace {

using allocate::Holding;
using allocate::HoldingRequest;
using allocate::Holdings;
using allocate::Machine;
using allocate::Pipeline;
using Kind = Problem::Kind;
using Held = std::map<std::string, Holding>;

/// The machine as containers of other classes see it.
Machine without(const Topology& topology, const CpuSet& cpus) {
  std::vector<Cpu> rest = topology.cpus();
  for (Cpu& cpu : rest) cpu.online = cpu.online && !cpus.contains(cpu.cpu);
  return Machine(
      Topology::make(std::move(rest), topology.distances(), topology.nodes().ids()).value());
}

CpuSet owned_in(const Held& holdings) {
  CpuSet owned;
  for (const auto& [id, holding] : holdings) {
    if (holding.request.use == CpuUse::kExclusive) owned |= holding.cpus;
  }
  return owned;
}

Expected<Pipeline, std::string> pipeline_of(const Rules& rules) {
  if (rules.steps.empty()) return *allocate::find_policy(rules.placement);
  return allocate::policy_of(rules.steps);
}

std::string overlap_of(const Rules& rules) {
  if (rules.infra.intersects(rules.exclusive)) return "infra and exclusive overlap";
  if (rules.infra.intersects(rules.reserved)) return "infra and reserved overlap";
  if (rules.reserved.intersects(rules.exclusive)) return "reserved and exclusive overlap";
  return {};
}

}  // namespace

Expected<Books, std::string> Books::open(const Topology& topology, Rules rules) {
  if (std::string overlap = overlap_of(rules); !overlap.empty()) {
    return unexpected(std::move(overlap));
  }
  const CpuSet strange = (rules.infra | rules.exclusive | rules.reserved) - topology.all();
  if (!strange.empty()) return unexpected("the machine has no CPU " + format_list(strange));
  const int left = (topology.online() - rules.infra).size();
  if (left < std::max(rules.min_shared, 1)) {
    return unexpected("the shared pool would have " + std::to_string(left) +
                      " CPUs, fewer than min_shared");
  }
  if (rules.options.has(allocate::CpuOption::kStrictCpuReservation)) {
    return unexpected(
        "strict-cpu-reservation: reserved CPUs are part of the shared pool; use infra");
  }
  const auto pipeline = pipeline_of(rules);
  if (!pipeline) return unexpected("steps: " + pipeline.error());
  const auto refused = refused_options(rules.options, without(topology, rules.infra), rules.align);
  if (refused) return unexpected(*refused);
  return Books(topology, std::move(rules));
}

Books::Books(const Topology& topology, Rules rules)
    : rules_(std::move(rules)),
      topology_(std::make_shared<Topology>(topology)),
      machine_(std::make_shared<Machine>(without(topology, rules_.infra))),
      kept_shared_(find_kept_shared({})),
      holdings_(empty_holdings()) {}

void Books::make_machine() {
  machine_ = std::make_shared<Machine>(without(*topology_, rules_.infra | outside_));
}

Holdings Books::empty_holdings() const {
  return Holdings(*machine_, kept_shared_, rules_.options, *pipeline_of(rules_));
}

/// What is owned stays so, whatever the rules say by now: no container is moved for them.
CpuSet Books::find_kept_shared(const CpuSet& owned) const {
  const CpuSet& all = machine_->cpus();
  CpuSet kept = rules_.reserved & all;
  if (!rules_.exclusive.empty()) kept |= all - rules_.exclusive;
  kept |= foreign_ & all;
  kept -= owned;
  const int missing = std::max(rules_.min_shared, 1) - kept.size();
  if (missing > 0) kept |= pack(*machine_, all - kept - owned, missing);
  return kept;
}

/// Precondition: nothing in it overlaps.
void Books::reopen(Held holdings) {
  kept_shared_ = find_kept_shared(owned_in(holdings));
  holdings_ = empty_holdings();
  holdings_.restore(std::move(holdings));
}

// --- containers

std::optional<Problem> Books::create(const Candidate& candidate, const Locality& locality) {
  const auto known = entries_.find(candidate.id);
  if (known != entries_.end() && !known->second.ended) return std::nullopt;
  const Verdict verdict = classify(candidate, rules_);
  Books next = *this;
  const CpuSet former = next.replace(candidate);
  Entry entry{.about = candidate,
              .use = verdict.use,
              .infra = verdict.infra,
              .former = {},
              .problem = verdict.problem};
  if (verdict.use != CpuUse::kNone) {
    entry.problem = next.place(candidate, verdict.use, verdict.cpus, former, locality);
  }
  if (entry.problem && rules_.refuse) return entry.problem;
  if (entry.problem) entry.use = CpuUse::kNone;
  next.bind_memory(entry, locality);
  next.entries_[candidate.id] = std::move(entry);
  next.reconcile();
  *this = std::move(next);
  return std::nullopt;
}

/// The CPUs that the container had under another id. A runtime may not have reported its exit.
CpuSet Books::replace(const Candidate& candidate) {
  CpuSet former;
  std::vector<std::string> predecessors;
  for (const auto& [id, entry] : entries_) {
    const bool same = id == candidate.id ||
                      (!candidate.pod_uid.empty() && entry.about.pod_uid == candidate.pod_uid &&
                       entry.about.name == candidate.name);
    if (!same) continue;
    former |= entry.former;
    if (entry.use == CpuUse::kExclusive) former |= holdings_.cpus_of(id);
    predecessors.push_back(id);
  }
  for (const std::string& id : predecessors) erase(id);
  return former;
}

/// `former` is preferred.
std::optional<Problem> Books::place(const Candidate& candidate, CpuUse use, int cpus,
                                    const CpuSet& former, const Locality& locality) {
  const CpuSet free = use == CpuUse::kExclusive ? available() : shared_pool();
  auto nodes =
      nodes_for(candidate, {.free = free, .former = former & free, .cpus = cpus}, locality);
  if (!nodes) return nodes.error();
  const auto added = holdings_.add(
      candidate.id, {.use = use, .cpus = cpus, .numa_affinity = *std::move(nodes)}, former);
  return added ? std::nullopt : std::optional(to_problem(added.error()));
}

/// Where fewer CPUs are free than it needs, that is for the allocation to say.
Expected<std::optional<NodeSet>, Problem> Books::nodes_for(const Candidate& candidate,
                                                           const Demand& demand,
                                                           const Locality& locality) const {
  if (rules_.align == allocate::HintPolicy::kNone) return std::optional<NodeSet>{};
  if (rules_.align_pods) {
    if (auto nodes = nodes_of_pod(candidate.sandbox)) return nodes;
  }
  const bool whole_pod = rules_.align_pods && locality.pod.cpus >= demand.cpus;
  const Needs& needs = whole_pod ? locality.pod.needs : locality.needs;
  AlignmentProblem problem{.machine = *machine_,
                           .policy = rules_.align,
                           .options = rules_.options,
                           .available = demand.free,
                           .former = demand.former,
                           .cpus = whole_pod ? locality.pod.cpus : demand.cpus};
  auto merged = align(problem, needs, locality.room);
  if (!merged.admit && !demand.former.empty()) {
    problem.former = {};
    merged = align(problem, needs, locality.room);
  }
  if (merged.admit || demand.cpus > demand.free.size()) return std::move(merged.affinity);
  return unexpected(Problem{Kind::kNotAligned, demand.cpus, 0});
}

/// A bound that the nodes have no room for would kill the container when they are full.
void Books::bind_memory(Entry& entry, const Locality& locality) const {
  const bool is_wanted = rules_.bind_memory && locality.bindable && entry.use != CpuUse::kNone;
  if (!is_wanted || locality.needs.memory.empty()) return;
  NodeSet nodes = topology_->nodes_of(holdings_.cpus_of(entry.about.id));
  entry.memory_unbound = !has_room(nodes, locality.needs, locality.room);
  if (!entry.memory_unbound) entry.mems = std::move(nodes);
}

/// What it has on its nodes stays there; it may use those of its new CPUs, too, and all of them
/// once it has none of its own.
void Books::widen_memory() {
  for (auto& [id, entry] : entries_) {
    const bool is_free = entry.use == CpuUse::kNone;
    if (is_free) entry.memory_unbound = false;
    if (entry.mems.empty()) continue;
    entry.mems |= is_free ? topology_->nodes() : topology_->nodes_of(cpus_of(id));
  }
}

/// Those of its containers that have CPUs.
std::optional<NodeSet> Books::nodes_of_pod(const std::string& sandbox) const {
  for (const auto& [id, entry] : entries_) {
    const Holding* held = entry.about.sandbox == sandbox ? holding(id) : nullptr;
    if (held != nullptr && held->request.numa_affinity) return held->request.numa_affinity;
  }
  return std::nullopt;
}

const Holding* Books::holding(const std::string& id) const {
  const auto found = holdings_.all().find(id);
  return found == holdings_.all().end() ? nullptr : &found->second;
}

std::optional<Problem> Books::resize(const std::string& id, std::int64_t quota,
                                     std::int64_t period) {
  const auto known = entries_.find(id);
  if (known == entries_.end() || known->second.ended) return std::nullopt;
  const std::optional<Problem> before = known->second.problem;
  Books next = *this;
  Entry& entry = next.entries_.at(id);
  if (quota != 0) entry.about.quota = quota;
  if (period != 0) entry.about.period = period;
  const bool has_cpus = holding(id) != nullptr;
  if (has_cpus) {
    next.resize_holding(entry);
  } else if (before) {
    next.retry(id);
  }
  if (has_cpus && rules_.refuse && entry.problem && entry.problem != before) return entry.problem;
  next.reconcile();
  *this = std::move(next);
  return std::nullopt;
}

/// Without a limit of whole CPUs it has none of its own; what it cannot get leaves it what it has.
void Books::resize_holding(Entry& entry) {
  const std::string& id = entry.about.id;
  const auto cpus = whole_cpus(entry.about.quota, entry.about.period);
  if (!cpus) {
    entry.problem = cpus.error();
    entry.use = CpuUse::kNone;
    return release(id);
  }
  if (*cpus == holding(id)->request.cpus) return;
  const auto resized = holdings_.resize(id, *cpus);
  entry.problem = resized ? std::nullopt : std::optional(to_problem(resized.error()));
}

/// One that could not have its class may have it with another limit.
void Books::retry(const std::string& id) {
  Entry& entry = entries_.at(id);
  const Verdict verdict = classify(entry.about, rules_);
  entry.problem = verdict.problem;
  if (verdict.use == CpuUse::kNone) return;
  entry.problem = place(entry.about, verdict.use, verdict.cpus, {}, {});
  if (!entry.problem) entry.use = verdict.use;
}

std::optional<Problem> Books::change(const std::string& id, CpuUse use) {
  const auto known = entries_.find(id);
  if (known == entries_.end() || known->second.ended) return std::nullopt;
  if (known->second.infra) return Problem{Kind::kInfra};
  if (use == CpuUse::kNone) {
    release(id);
  } else {
    const Candidate& about = known->second.about;
    const auto cpus = whole_cpus(about.quota, about.period);
    if (!cpus) return cpus.error();
    if (const auto problem = holding(id) == nullptr ? place(about, use, *cpus, {}, {})
                                                    : change_holding(id, use, *cpus)) {
      return problem;
    }
  }
  known->second.use = use;
  known->second.adopted = false;
  known->second.problem.reset();
  reconcile();
  return std::nullopt;
}

void Books::request(const std::string& id, const std::optional<std::string>& requested) {
  const auto known = entries_.find(id);
  if (known == entries_.end() || known->second.ended) return;
  if (known->second.about.requested == requested) return;
  known->second.about.requested = requested;
  const Verdict verdict = classify(known->second.about, rules_);
  if (verdict.infra) return;
  known->second.problem = verdict.problem ? verdict.problem : change(id, verdict.use);
}

std::optional<Problem> Books::change_holding(const std::string& id, CpuUse use, int cpus) {
  HoldingRequest request = holding(id)->request;
  request.use = use;
  request.cpus = cpus;
  const auto changed = holdings_.change(id, request);
  return changed ? std::nullopt : std::optional(to_problem(changed.error()));
}

void Books::end(const std::string& id) {
  const auto known = entries_.find(id);
  if (known == entries_.end() || known->second.ended) return;
  known->second.ended = true;
  known->second.mems = {};
  if (known->second.use == CpuUse::kExclusive) known->second.former = holdings_.cpus_of(id);
  release(id);
  reconcile();
}

void Books::remove(const std::string& id) {
  erase(id);
  reconcile();
}

void Books::remove_pod(const std::string& sandbox) {
  std::vector<std::string> gone;
  for (const auto& [id, entry] : entries_) {
    if (entry.about.sandbox == sandbox) gone.push_back(id);
  }
  for (const std::string& id : gone) erase(id);
  reconcile();
}

void Books::release(const std::string& id) {
  if (holding(id) != nullptr) static_cast<void>(holdings_.remove(id));
}

void Books::erase(const std::string& id) {
  release(id);
  entries_.erase(id);
}

CpuSet Books::cpus_of(const std::string& id) const {
  const auto known = entries_.find(id);
  if (known == entries_.end() || known->second.ended) return {};
  if (known->second.infra && !infra().empty()) return infra();
  return holding(id) != nullptr ? holdings_.cpus_of(id) : shared_pool();
}

}  // namespace ka::policy::managed
