// SPDX-License-Identifier: Apache-2.0
#include "affinity/managed/manager.hpp"

#include <algorithm>
#include <variant>

#include "affinity/host/node_memory.hpp"
#include "affinity/managed/allocations.hpp"
#include "affinity/managed/candidate.hpp"
#include "affinity/managed/locality.hpp"
#include "base/text.hpp"
#include "policy/facts/limits.hpp"

namespace ka::managed {

namespace ledger = policy::ledger;

namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using board::NotificationKind;
using policy::CpuSet;
using policy::managed::Books;
using policy::managed::CpuUse;
using policy::managed::Problem;

/// What is kept of a node has limits (docs/understand/limits.md); names were cut to theirs.
Result<void> admit(const nri::Described& container, const Books& books) {
  const auto& about = container.candidate;
  if (!base::is_id(about.id) || !base::is_id(about.sandbox)) {
    return fail(ErrorCode::kInvalid, "kata-affinity: not an id of a container and its pod");
  }
  const bool is_known = books.entries().contains(about.id);
  if (is_known || books.entries().size() < policy::kMaxNodeContainers) return {};
  return fail(ErrorCode::kConflict, "kata-affinity: the node has " +
                                        std::to_string(policy::kMaxNodeContainers) + " containers");
}

std::string refusal(const policy::managed::Candidate& about, const Problem& problem) {
  return "kata-affinity: container " + about.name + ": " + sentence(problem);
}

}  // namespace

Manager::Manager(Books books, AllocationFile file, Cpusets cpusets, const Dependencies& with)
    : books_(std::move(books)),
      file_(std::move(file)),
      cpusets_(std::move(cpusets)),
      with_(with),
      memory_nodes_(host::memory_nodes(with.sys)) {}

Result<void> Manager::start() {
  const auto saved = file_.load();
  if (saved) books_.restore(*saved);
  with_.node.set_status(ledger::Source::kManaged,
                        {true, "gives containers their CPUs through NRI"});
  if (!saved) return unexpected(saved.error());
  if (books_.entries().empty()) return {};  // nothing is known, which is no owner lost
  std::vector<ledger::Event> events;
  if (auto event = owners()) events.push_back(std::move(*event));
  with_.node.handle(events);
  return {};
}

/// The books as they are to be changed: others may have given CPUs away since.
Books Manager::upcoming(bool growth_held) const {
  Books next = books_;
  next.hold_growth(growth_held);
  CpuSet bound;
  for (const auto& [id, cpus] : foreign_) bound |= cpus;
  next.set_foreign(bound);
  next.set_outside(owned_elsewhere());
  return next;
}

/// By pods that the runtime does not have: an API client's, libvirt's, the shim proxy's.
CpuSet Manager::owned_elsewhere() const {
  std::set<std::string_view> ours;
  for (const auto& [id, entry] : books_.entries()) ours.insert(entry.about.sandbox);
  CpuSet owned;
  for (const auto& [id, pod] : with_.node.ledger().pods()) {
    if (pod.source != ledger::Source::kNri && !ours.contains(id)) owned |= pod.exclusive_cpus();
  }
  return owned;
}

/// Makes `change`. What has happened cannot be refused: where it cannot be written, it is made
/// without what other containers would get by it.
Result<void> Manager::commit(const Change& change) {
  Books next = upcoming(false);
  change(next);
  if (auto done = adopt(std::move(next))) return done;
  Books held = upcoming(true);
  change(held);
  held.hold_growth(false);
  return adopt(std::move(held));
}

/// Makes `next` the books, once it is on disk. Where it cannot be written, the next daemon knows
/// only what was written before: then nothing may be given away.
Result<void> Manager::adopt(Books next) {
  const auto saved = save(next);
  if (!saved && !next.exclusive().subset_of(books_.exclusive())) {
    return fail(ErrorCode::kUnavailable,
                "kata-affinity: cannot record the allocation: " + unsaved_);
  }
  const Books before = std::exchange(books_, std::move(next));
  report_changes(before);
  return {};
}

Result<void> Manager::save(const Books& next) {
  auto saved = file_.save(next.save());
  const bool was_saved = unsaved_.empty();
  unsaved_ = saved ? "" : saved.error().message;
  if (saved) return saved;
  ++with_.board.counters().errors["state"];
  if (was_saved) {
    with_.board.notify(NotificationKind::kStateUnsaved, {},
                       "allocations not on disk, no CPUs are given away: " + unsaved_, unsaved_);
  }
  return saved;
}

void Manager::report_changes(const Books& before) {
  for (const auto& [id, entry] : books_.entries()) {
    const auto known = before.entries().find(id);
    const bool is_new = known == before.entries().end();
    const bool same = !is_new && known->second.use == entry.use &&
                      known->second.problem == entry.problem &&
                      (entry.use == CpuUse::kNone || before.cpus_of(id) == books_.cpus_of(id));
    if (same || entry.ended) continue;
    const auto kind = entry.problem             ? NotificationKind::kClassRefused
                      : is_new && entry.adopted ? NotificationKind::kContainerAdopted
                                                : NotificationKind::kClassChanged;
    if (entry.problem) {
      ++with_.board.counters().class_problems[std::string(problem_name(entry.problem->kind))];
    }
    with_.board.notify(kind, entry.about.sandbox,
                       title(entry) + ": " + sentence(entry, books_.cpus_of(id)), {}, id);
  }
}

// --- what the runtime does

Result<void> Manager::create(const nri::Described& container) {
  const std::string& id = container.candidate.id;
  if (auto admitted = admit(container, books_); !admitted) return admitted;
  if (!container.cpus.empty() && !books_.entries().contains(id)) {
    foreign_[id] = container.cpus;
    with_.board.notify(NotificationKind::kForeignCpuset, container.candidate.sandbox,
                       "container " + container.candidate.name +
                           " has CPUs already, by kubelet or another NRI plugin: not managed",
                       {}, id);
    return commit([](Books&) {});
  }
  std::optional<Problem> problem;
  const auto locality = locality_of(container);
  auto done =
      commit([&](Books& next) { problem = next.create(candidate_of(container), locality); });
  if (problem) {
    ++with_.board.counters().class_problems[std::string(problem_name(problem->kind))];
    with_.board.notify(NotificationKind::kClassRefused, container.candidate.sandbox,
                       "container " + container.candidate.name + " refused: " + sentence(*problem),
                       {}, id);
    return fail(ErrorCode::kConflict, refusal(container.candidate, *problem));
  }
  if (done) running_[id] = {};
  return done;
}

policy::managed::Locality Manager::locality_of(const nri::Described& container) const {
  const auto& rules = books_.rules();
  const bool counts = rules.bind_memory || rules.align != policy::allocate::HintPolicy::kNone;
  return counts ? read_locality(with_.sys, container) : policy::managed::Locality{};
}

Result<void> Manager::resize(const std::string& container, std::int64_t quota,
                             std::int64_t period) {
  const auto known = books_.entries().find(container);
  if (known == books_.entries().end()) return {};
  std::optional<Problem> problem;
  const auto about = known->second.about;
  auto done = commit([&](Books& next) { problem = next.resize(container, quota, period); });
  return problem ? fail(ErrorCode::kConflict, refusal(about, *problem)) : done;
}

void Manager::end(const std::string& container) {
  if (!books_.entries().contains(container)) return;
  static_cast<void>(commit([&](Books& next) { next.end(container); }));
}

void Manager::synchronize(const std::vector<nri::Described>& all,
                          const std::set<std::string>& sandboxes) {
  Listing listing{{}, sandboxes, {}};
  std::map<std::string, CpuSet> foreign;
  for (const nri::Described& one : all) {
    if (foreign_.contains(one.candidate.id)) {
      foreign[one.candidate.id] = one.cpus;
    } else if (base::is_id(one.candidate.id) && base::is_id(one.candidate.sandbox) &&
               listing.containers.size() < policy::kMaxNodeContainers) {
      listing.containers.push_back({candidate_of(one), one.cpus});
      listing.running[one.candidate.id] = {one.cpus, one.mems};
    }
  }
  foreign_ = std::move(foreign);
  add_unlisted(listing);
  static_cast<void>(
      commit([&](Books& next) { next.synchronize(listing.containers, listing.sandboxes); }));
  running_ = std::move(listing.running);
}

bool Manager::adopt(const nri::Described& container) {
  const std::string& id = container.candidate.id;
  if (books_.entries().contains(id) || foreign_.contains(id)) return false;
  if (!admit(container, books_)) return false;
  static_cast<void>(
      commit([&](Books& next) { next.adopt({candidate_of(container), container.cpus}); }));
  running_[id] = {container.cpus, container.mems};
  return true;
}

void Manager::forget(const std::vector<ledger::Event>& events) {
  std::set<std::string> containers;
  std::set<std::string> pods;
  for (const ledger::Event& event : events) {
    const auto* container = std::get_if<ledger::ContainerGone>(&event.body);
    if (container != nullptr) containers.insert(container->container);
    if (const auto* pod = std::get_if<ledger::PodGone>(&event.body)) pods.insert(pod->id);
  }
  if (containers.empty() && pods.empty()) return;
  std::erase_if(foreign_, [&](const auto& one) { return containers.contains(one.first); });
  static_cast<void>(commit([&](Books& next) {
    for (const std::string& id : containers) next.remove(id);
    for (const std::string& id : pods) next.remove_pod(id);
  }));
  std::erase_if(running_,
                [this](const auto& one) { return !books_.entries().contains(one.first); });
}

// --- what follows

/// The exited have no set. Narrower ones first: no CPU is in two exclusive sets meanwhile.
nri::Updates Manager::updates() {
  nri::Updates narrower;
  nri::Updates others;
  for (auto& [id, running] : running_) {
    CpuSet cpus = books_.cpus_of(id);
    if (cpus.empty()) continue;
    const policy::NodeSet wanted = mems_of(id);
    const policy::NodeSet mems = wanted == running.mems ? policy::NodeSet{} : wanted;
    if (cpus == running.written && mems.empty()) continue;
    const bool narrows = running.written.empty() || cpus.subset_of(running.written);
    (narrows ? narrower : others).push_back({id, cpus, mems});
    running.written = std::move(cpus);
    if (!mems.empty()) running.mems = mems;
  }
  narrower.insert(narrower.end(), others.begin(), others.end());
  if (!narrower.empty()) answered_ = with_.clock.now();
  return narrower;
}

/// Memory nodes that its cgroup is to have; empty: as they are.
policy::NodeSet Manager::mems_of(const std::string& container) const {
  return books_.entries().at(container).mems & memory_nodes_;
}

void Manager::complete(std::vector<ledger::Event>& events) {
  for (ledger::Event& event : events) {
    if (auto* seen = std::get_if<ledger::ContainerSeen>(&event.body)) stamp(*seen);
  }
  add_others(events);
  if (auto event = owners()) events.insert(events.begin(), std::move(*event));
}

/// What the runtime has may be older than what we gave it: then it gets it once more.
void Manager::stamp(ledger::ContainerSeen& seen) {
  const auto running = running_.find(seen.id);
  if (running != running_.end() && seen.spec.cpus && !seen.spec.cpus->empty()) {
    running->second.written = *seen.spec.cpus;
    running->second.mems = seen.spec.mems.value_or(running->second.mems);
  }
  const CpuSet cpus = books_.cpus_of(seen.id);
  if (!cpus.empty()) seen.spec.cpus = cpus;
}

/// Of containers that the ledger has with other sets than they have by now.
void Manager::add_others(std::vector<ledger::Event>& events) const {
  std::set<std::string> reported;
  for (const ledger::Event& event : events) {
    if (const auto* seen = std::get_if<ledger::ContainerSeen>(&event.body)) {
      reported.insert(seen->id);
    }
  }
  for (const auto& [id, entry] : books_.entries()) {
    const ledger::PodRecord* pod = with_.node.ledger().find(entry.about.sandbox);
    if (pod == nullptr || reported.contains(id) || entry.ended) continue;
    const auto known = pod->containers.find(id);
    const CpuSet cpus = books_.cpus_of(id);
    if (known == pod->containers.end() || known->second.facts.cpus == cpus) continue;
    ledger::ContainerSeen seen{.sandbox = pod->id, .id = id};
    seen.spec.cpus = cpus;
    events.emplace_back(ledger::Source::kNri, std::move(seen));
  }
}

/// Absent where nothing has changed.
std::optional<ledger::Event> Manager::owners() {
  auto now = owners_of(books_);
  if (reported_ == now) return std::nullopt;
  reported_ = now;
  return ledger::Event{ledger::Source::kManaged, std::move(now)};
}

void Manager::set_updater(nri::Updater* updater) {
  updater_ = updater;
  const char* changes = updater == nullptr ? "changes between its calls are written to cgroups"
                                           : "also between its calls";
  with_.node.set_status(ledger::Source::kManaged,
                        {true, std::string("gives containers their CPUs through NRI; ") + changes});
}

/// What the runtime has not done when it answers is written.
void Manager::apply() {
  apply_to_ledger();
  auto requested = updater_ == nullptr ? nri::Updates{} : updates();
  if (requested.empty()) return write_mismatched();
  updater_->update(requested, [this] { write_mismatched(); });
}

void Manager::apply_at_once() {
  apply_to_ledger();
  write_mismatched();
}

/// As the line does it: first what narrows, then what widens.
void Manager::apply_to_ledger() {
  const auto ended = ended_unlisted();
  for (const std::string& id : ended) {
    unlisted_.erase(id);
    running_.erase(id);
  }
  static_cast<void>(commit([&](Books& next) {
    for (const std::string& id : ended) next.remove(id);
    next.reconcile();
  }));
  std::vector<ledger::Event> events;
  complete(events);
  if (!events.empty()) with_.node.narrow(events, base::Deadline::none());
  is_unfinished_ |= !events.empty();
}

}  // namespace ka::managed
