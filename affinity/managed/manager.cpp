// SPDX-License-Identifier: Apache-2.0
#include "affinity/managed/manager.hpp"

#include <algorithm>
#include <variant>

#include "affinity/managed/allocations.hpp"

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
using policy::managed::Entry;
using policy::managed::Listed;
using policy::managed::Problem;

std::string refusal(const policy::managed::Candidate& about, const Problem& problem) {
  return "kata-affinity: container " + about.name + ": " + sentence(problem);
}

}  // namespace

Manager::Manager(Books books, AllocationFile file, Cpusets cpusets, const Dependencies& with)
    : books_(std::move(books)), file_(std::move(file)), cpusets_(std::move(cpusets)), with_(with) {}

void Manager::start() {
  with_.node.set_status(ledger::Source::kManaged,
                        {true, "gives containers their CPUs through NRI"});
  if (books_.entries().empty()) return;  // without a file nothing is known, which is no owner lost
  std::vector<ledger::Event> events;
  if (auto event = owners()) events.push_back(std::move(*event));
  with_.node.handle(events);
}

/// Makes `next` the books, once it is on disk. Where it cannot be written, the next daemon knows
/// only what was written before: then nothing may be given away.
Result<void> Manager::commit(Books next) {
  const auto saved = file_.save(next.save());
  unsaved_ = saved ? "" : saved.error().message;
  if (!saved && !next.exclusive().subset_of(books_.exclusive())) {
    return fail(ErrorCode::kUnavailable,
                "kata-affinity: cannot record the allocation: " + unsaved_);
  }
  if (!saved) ++with_.board.counters().errors["state"];
  const Books before = std::exchange(books_, std::move(next));
  report_changes(before);
  return {};
}

/// What has happened cannot be refused.
void Manager::adopt_if_saved(Books next) {
  if (commit(std::move(next))) return;
  with_.board.notify(NotificationKind::kStateUnsaved, {},
                     "allocations not on disk, no CPUs are given away: " + unsaved_, unsaved_);
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
  if (!container.cpus.empty() && !books_.entries().contains(id)) {
    foreign_[id] = container.cpus;
    keep_foreign();
    with_.board.notify(NotificationKind::kForeignCpuset, container.candidate.sandbox,
                       "container " + container.candidate.name +
                           " has CPUs already, by kubelet or another NRI plugin: not managed",
                       {}, id);
    return {};
  }
  Books next = books_;
  if (const auto problem = next.create(container.candidate)) {
    ++with_.board.counters().class_problems[std::string(problem_name(problem->kind))];
    with_.board.notify(NotificationKind::kClassRefused, container.candidate.sandbox,
                       "container " + container.candidate.name + " refused: " + sentence(*problem),
                       {}, id);
    return fail(ErrorCode::kConflict, refusal(container.candidate, *problem));
  }
  if (auto done = commit(std::move(next)); !done) return done;
  running_[id] = {container.cgroup, {}};
  return {};
}

/// Nobody gets for itself what they run on.
void Manager::keep_foreign() {
  CpuSet cpus;
  for (const auto& [id, set] : foreign_) cpus |= set;
  books_.set_foreign(cpus);
}

Result<void> Manager::resize(const std::string& container, std::int64_t quota,
                             std::int64_t period) {
  const auto known = books_.entries().find(container);
  if (known == books_.entries().end()) return {};
  Books next = books_;
  if (const auto problem = next.resize(container, quota, period)) {
    return fail(ErrorCode::kConflict, refusal(known->second.about, *problem));
  }
  return commit(std::move(next));
}

void Manager::end(const std::string& container) {
  if (!books_.entries().contains(container)) return;
  Books next = books_;
  next.end(container);
  adopt_if_saved(std::move(next));
}

void Manager::synchronize(const std::vector<nri::Described>& all) {
  std::vector<Listed> listed;
  std::map<std::string, Running> running;
  std::map<std::string, CpuSet> foreign;
  for (const nri::Described& one : all) {
    if (foreign_.contains(one.candidate.id)) {
      foreign[one.candidate.id] = one.cpus;
      continue;
    }
    listed.push_back({one.candidate, one.cpus});
    running[one.candidate.id] = {one.cgroup, one.cpus};
  }
  foreign_ = std::move(foreign);
  keep_foreign();
  Books next = books_;
  next.synchronize(listed);
  adopt_if_saved(std::move(next));
  running_ = std::move(running);
}

void Manager::forget(const std::vector<ledger::Event>& events) {
  for (const ledger::Event& event : events) {
    const auto* gone = std::get_if<ledger::ContainerGone>(&event.body);
    if (gone != nullptr && foreign_.erase(gone->container) > 0) keep_foreign();
  }
  Books next = books_;
  for (const ledger::Event& event : events) {
    if (const auto* gone = std::get_if<ledger::ContainerGone>(&event.body)) {
      next.remove(gone->container);
    }
    if (const auto* gone = std::get_if<ledger::PodGone>(&event.body)) next.remove_pod(gone->id);
  }
  if (next.entries().size() == books_.entries().size()) return;
  adopt_if_saved(std::move(next));
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
    if (cpus.empty() || cpus == running.written) continue;
    const bool narrows = running.written.empty() || cpus.subset_of(running.written);
    (narrows ? narrower : others).push_back({id, cpus, {}});
    running.written = std::move(cpus);
  }
  narrower.insert(narrower.end(), others.begin(), others.end());
  return narrower;
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
    events.push_back({ledger::Source::kNri, std::move(seen)});
  }
}

/// Absent where nothing has changed.
std::optional<ledger::Event> Manager::owners() {
  auto now = owners_of(books_);
  if (reported_ == now) return std::nullopt;
  reported_ = now;
  return ledger::Event{ledger::Source::kManaged, std::move(now)};
}

/// As the line does it: first what narrows, then what widens.
void Manager::apply() {
  std::vector<ledger::Event> events;
  complete(events);
  if (!events.empty()) with_.node.narrow(events, base::Deadline::none());
  write_cpusets(true);
  write_cpusets(false);
  if (!events.empty()) with_.node.finish({});
}

/// Containers that are not in a VM and whose cgroups differ from the books.
void Manager::write_cpusets(bool narrower) {
  for (const auto& [id, running] : running_) {
    const CpuSet cpus = books_.cpus_of(id) & with_.node.topology().online();
    if (cpus.empty() || running.cgroup.empty()) continue;
    const auto actual = cpusets_.read(running.cgroup, id);
    if (!actual || *actual == cpus || cpus.subset_of(*actual) != narrower) continue;
    const auto written = cpusets_.write(running.cgroup, id, cpus);
    const Entry& entry = books_.entries().at(id);
    with_.board.notify(NotificationKind::kCpusetWritten, entry.about.sandbox,
                       title(entry) + ": cgroup had \"" + policy::format_list(*actual) + "\", " +
                           (written ? "now \"" + policy::format_list(cpus) + '"'
                                    : "cannot be written: " + written.error().message),
                       written ? "" : written.error().message, id);
  }
}

// --- what people do

Result<void> Manager::change(const std::string& sandbox, const std::optional<std::string>& name,
                             CpuUse use) {
  Books next = books_;
  int changed = 0;
  for (const auto& [id, entry] : books_.entries()) {
    const bool concerned =
        entry.about.sandbox == sandbox && !entry.ended && (!name || entry.about.name == *name);
    if (!concerned) continue;
    if (const auto problem = next.change(id, use)) {
      return fail(ErrorCode::kConflict, "nothing changed: " + title(entry) + ": " +
                                            sentence(*problem) + "; " + remedy(*problem) +
                                            (name ? "" : ", or name one container of the pod"));
    }
    ++changed;
  }
  if (changed == 0) {
    return fail(ErrorCode::kNotFound,
                "no container" + (name ? " \"" + *name + '"' : "") + " in pod \"" + sandbox + '"');
  }
  if (auto done = commit(std::move(next)); !done) return done;
  apply();
  return {};
}

void Manager::change_machine(const policy::Topology& topology) {
  Books next = books_;
  next.change_machine(topology);
  adopt_if_saved(std::move(next));
  apply();
}

}  // namespace ka::managed
