// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/holdings.hpp"

#include <algorithm>
#include <utility>

namespace ka::policy::allocate {
namespace {

Refusal unknown() { return {.reason = Refusal::Reason::kUnknown}; }

Refusal duplicate() { return {.reason = Refusal::Reason::kDuplicate}; }

Step preferring(std::string_view name, std::string_view summary, CpuSet cpus) {
  return {Phase::kFilter, name, summary,
          [cpus = std::move(cpus)](Cycle& cycle) { cycle.prefer(cpus); }};
}

}  // namespace

Holdings::Holdings(const Machine& machine, CpuSet reserved, OptionSet options)
    : Holdings(machine, std::move(reserved), options, policy_for(options)) {}

Holdings::Holdings(const Machine& machine, CpuSet reserved, OptionSet options, Pipeline policy,
                   Alignment alignment)
    : machine_(&machine),
      reserved_(std::move(reserved)),
      options_(options),
      policy_(std::move(policy)),
      alignment_(alignment) {}

Expected<Moved, Refusal> Holdings::add(const std::string& id, const HoldingRequest& request,
                                       const CpuSet& preferred) {
  if (holdings_.contains(id)) return unexpected(duplicate());
  auto cpus = choose(request, {}, false, {.preferred = preferred});
  if (!cpus) return unexpected(cpus.error());
  Holdings next = *this;
  if (auto refusal = next.put(id, {.request = request, .cpus = *cpus, .promised = *cpus})) {
    return unexpected(*refusal);
  }
  return commit(std::move(next));
}

Expected<Moved, Refusal> Holdings::remove(const std::string& id) {
  Holdings next = *this;
  if (next.holdings_.erase(id) == 0) return unexpected(unknown());
  next.update();
  return commit(std::move(next));
}

Expected<Moved, Refusal> Holdings::resize(const std::string& id, int cpus) {
  const auto found = holdings_.find(id);
  if (found == holdings_.end()) return unexpected(unknown());
  Holding holding = found->second;
  if (holding.request.use == CpuUse::kNone) return Moved{};
  holding.request.cpus = cpus;
  auto chosen = choose(holding.request, holding, true);
  if (!chosen) return unexpected(chosen.error());
  holding.cpus = *std::move(chosen);
  holding.promised &= holding.cpus;
  Holdings next = *this;
  if (auto refusal = next.put(id, std::move(holding))) return unexpected(*refusal);
  return commit(std::move(next));
}

Expected<Moved, Refusal> Holdings::change(const std::string& id, const HoldingRequest& request) {
  const auto found = holdings_.find(id);
  if (found == holdings_.end()) return unexpected(unknown());
  auto cpus = choose(request, found->second, false);
  if (!cpus) return unexpected(cpus.error());
  Holding changed = found->second;
  changed.request = request;
  changed.cpus = changed.promised = *std::move(cpus);
  Holdings next = *this;
  if (auto refusal = next.put(id, std::move(changed))) return unexpected(*refusal);
  return commit(std::move(next));
}

CpuSet Holdings::cpus_of(const std::string& id) const {
  const auto found = holdings_.find(id);
  if (found == holdings_.end()) return {};
  return found->second.request.use == CpuUse::kNone ? shared_pool() : found->second.cpus;
}

CpuSet Holdings::shared_pool() const {
  CpuSet pool = machine_->cpus() - exclusive_;
  if (options_.has(CpuOption::kStrictCpuReservation)) pool -= reserved_;
  return pool;
}

/// `before` is what the container has now; with `keep` it grows or shrinks from there, else its
/// CPUs are only preferred to others. What is reserved is shared all the same: sharers get it where
/// nothing else is left.
Expected<CpuSet, Refusal> Holdings::choose(const HoldingRequest& request, const Holding& before,
                                           bool keep, const Liked& liked) const {
  if (request.use == CpuUse::kNone) return CpuSet{};
  const bool exclusive = request.use == CpuUse::kExclusive;
  CpuRequest wanted{.cpus = request.cpus,
                    .available = shared_pool() | before.cpus | liked.reusable,
                    .reserved = reserved_,
                    .options = exclusive ? options_ : OptionSet{},
                    .numa_affinity = request.numa_affinity,
                    .cpu_class = request.cpu_class,
                    .prefer_isolated = exclusive && request.prefer_isolated};
  if (keep) {
    wanted.held = before.cpus;
    wanted.promised = before.promised;
  }
  const Pipeline pipeline = pipeline_for(request.use, before.cpus | liked.preferred);
  auto answer = allocate(*machine_, wanted, pipeline);
  if (!answer && !exclusive) {
    wanted.reserved = {};
    answer = allocate(*machine_, wanted, pipeline);
  }
  if (!answer) return unexpected(answer.error());
  return answer->cpus;
}

/// Exclusive containers keep off CPUs that others are bound to, and sharers go where the fewest
/// are bound, as long as there is room.
Pipeline Holdings::pipeline_for(CpuUse use, const CpuSet& liked) const {
  Pipeline pipeline = policy_;
  if (!liked.empty()) {
    pipeline = pipeline.with(preferring("own-first", "CPUs that it has", liked));
  }
  if (use == CpuUse::kExclusive) {
    return pipeline.with(preferring("unbound-first", "CPUs that no container is bound to",
                                    machine_->cpus() - bound()));
  }
  std::map<int, int> sharers;
  for (const auto& [id, holding] : holdings_) {
    for (const int cpu : holding.cpus) ++sharers[cpu];
  }
  std::map<int, CpuSet> by_sharers;
  for (const int cpu : machine_->cpus()) by_sharers[sharers[cpu]].add(cpu);
  CpuSet lighter;
  for (const auto& [count, cpus] : by_sharers) {
    lighter |= cpus;
    pipeline = pipeline.with(preferring("least-shared", "CPUs with few sharers", lighter));
  }
  return pipeline;
}

CpuSet Holdings::bound() const {
  CpuSet cpus;
  for (const auto& [id, holding] : holdings_) {
    if (holding.request.use == CpuUse::kShare) cpus |= holding.cpus;
  }
  return cpus;
}

std::optional<Refusal> Holdings::put(const std::string& id, Holding holding) {
  const int requested = holding.request.cpus;
  holdings_[id] = std::move(holding);
  update();
  const bool anyone_shares = std::ranges::any_of(
      holdings_, [](const auto& entry) { return entry.second.request.use != CpuUse::kExclusive; });
  if (anyone_shares && shared_pool().empty()) {
    return Refusal{.reason = Refusal::Reason::kNothingLeft, .requested = requested};
  }
  return std::nullopt;
}

void Holdings::update() {
  exclusive_ = {};
  for (const auto& [id, holding] : holdings_) {
    if (holding.request.use == CpuUse::kExclusive) exclusive_ |= holding.cpus;
  }
  const CpuSet pool = shared_pool();
  for (auto& [id, holding] : holdings_) {
    const bool shares = holding.request.use == CpuUse::kShare;
    const bool full = holding.cpus.size() == holding.request.cpus;
    if (shares && !(full && holding.cpus.subset_of(pool))) move_sharer(holding, pool);
  }
}

/// A sharer whose CPUs became exclusive to another gets others for them; all of the pool, where it
/// is too small for what was asked for.
void Holdings::move_sharer(Holding& holding, const CpuSet& pool) const {
  holding.cpus &= pool;
  holding.promised &= pool;
  const auto chosen = choose(holding.request, holding, true);
  holding.cpus = chosen ? *chosen : pool;
}

Expected<Moved, Refusal> Holdings::commit(Holdings next) {
  const bool pool_moved = next.shared_pool() != shared_pool();
  Moved moved;
  for (const auto& [id, holding] : next.holdings_) {
    const auto before = holdings_.find(id);
    const bool follows = holding.request.use == CpuUse::kNone && pool_moved;
    if (follows || before == holdings_.end() || before->second != holding) moved.push_back(id);
  }
  for (const auto& [id, holding] : holdings_) {
    if (!next.holdings_.contains(id)) moved.push_back(id);
  }
  std::ranges::sort(moved);
  *this = std::move(next);
  return moved;
}

}  // namespace ka::policy::allocate
