// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/keeper.hpp"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

namespace ka::helper {
namespace {

using policy::CpuSet;
using policy::plan::HostRecord;

constexpr const char* kOutOfReach =
    "out of the helper's reach: whether they have masks is not known";

/// EINVAL, EIO, EPERM: an interrupt or a thread that the kernel keeps where it is
/// (write_irq_affinity() in kernel/irq/proc.c, __sched_setaffinity() in kernel/sched/).
bool is_final_for_mask(const base::Error& error) {
  return error.number == EINVAL || error.number == EIO || error.number == EPERM ||
         error.number == EACCES || error.number == EROFS;
}

/// The kernel may leave a part of what is written: of a thread's mask the CPUs that are not
/// isolated.
bool is_part_of_ours(const CpuSet& now, const HostRecord& record) {
  return std::ranges::any_of(record.ours,
                             [&now](const CpuSet& ours) { return now.subset_of(ours); });
}

std::set<std::string> names_of(const std::vector<HostMask>& masks) {
  std::set<std::string> names;
  for (const HostMask& mask : masks) names.insert(mask.name);
  return names;
}

}  // namespace

Keeper::Keeper(AllHostMasks kinds, RecordFile<MaskRecords> file, const log::Log& log)
    : kinds_(std::move(kinds)), file_(std::move(file)), log_(log) {}

void Keeper::adopt() {
  auto records = file_.load();
  if (records) {
    records_ = *std::move(records);
    return;
  }
  state_.problem = file_.path().string() +
                   ", of what was written to the host: " + records.error().message +
                   "; nothing is written: remove it and restart the helper (what was changed lasts "
                   "until the next boot)";
  log_.error("cannot read what an earlier helper wrote; nothing is written",
             {{"file", file_.path().string()}, {"reason", records.error().message}});
}

void Keeper::keep_off(const CpuSet& quiet, const CpuSet& kept, const CpuSet& interrupts) {
  if (!state_.problem.empty()) return;
  if (quiet != records_.quiet) {
    log_.info(quiet.empty() ? "the host may use all CPUs again" : "the host is kept off CPUs",
              {{"cpus", policy::format_list(quiet)}});
    refused_.clear();
  }
  if (interrupts != records_.interrupts) {
    log_.info(interrupts.empty() ? "the host's interrupts are kept off no other CPUs"
                                 : "the host's interrupts are kept off other CPUs, too",
              {{"cpus", policy::format_list(interrupts)}});
    refused_.clear();
  }
  records_.quiet = quiet;
  records_.interrupts = interrupts;
  kept_ = kept;
  check();
}

void Keeper::check() {
  if (!state_.problem.empty()) return;
  is_unfinished_ = false;
  before_ = records_.masks;
  state_ = {records_.quiet, {}, {}, records_.interrupts};
  note_those_before();
  for (const auto& kind : kinds_) bring(*kind);
  save();
}

/// What is there before anything is written was not born with a mask of ours.
void Keeper::note_those_before() {
  for (const auto& kind : kinds_) {
    std::string name(kind->kind());
    if (kind->born_by().empty() || records_.seen.contains(name)) continue;
    if (const auto found = kind->read()) records_.seen[std::move(name)] = names_of(*found);
  }
}

CpuSet Keeper::avoided_by(const HostMasks& kind) const {
  return kind.is_of_interrupts() ? records_.quiet | records_.interrupts : records_.quiet;
}

void Keeper::bring(const HostMasks& kind) {
  auto found = kind.read();
  if (!found) {
    state_.kinds.push_back({std::string(kind.kind()), 0, 0, {}, found.error().message});
    return;
  }
  record_new(kind, *found);
  std::vector<Item> items = plan(kind, *std::move(found));
  if (std::ranges::any_of(items, [this](const Item& item) { return is_to_be_written(item); })) {
    if (!record(items)) return;
    for (Item& item : items) {
      if (is_to_be_written(item)) write(kind, item);
    }
    if (!reread(kind, items)) return;
  }
  drop_records(items, kind.kind());
  report(kind, items);
}

/// What came since the last look, be it an earlier helper's, has of ours what it was born with, and
/// would keep it.
void Keeper::record_new(const HostMasks& kind, const std::vector<HostMask>& found) {
  if (kind.born_by().empty()) return;
  const auto seen = records_.seen.find(std::string(kind.kind()));
  const auto parent = std::ranges::find_if(
      before_, [&](const auto& entry) { return entry.first.first == kind.born_by(); });
  if (seen != records_.seen.end() && parent != before_.end()) {
    for (const HostMask& mask : found) {
      const auto& ours = parent->second.ours;
      const bool is_born = std::ranges::find(ours, mask.cpus) != ours.end();
      if (!is_born || seen->second.contains(mask.name)) continue;
      records_.masks.try_emplace({std::string(kind.kind()), mask.name}, parent->second);
    }
  }
  records_.seen[std::string(kind.kind())] = names_of(found);
}

std::vector<Keeper::Item> Keeper::plan(const HostMasks& kind, std::vector<HostMask> found) {
  const CpuSet instead = kind.moves_elsewhere() ? kept_ : CpuSet{};
  const CpuSet avoided = avoided_by(kind);
  std::vector<Item> items;
  for (HostMask& mask : found) {
    MaskKey key(kind.kind(), mask.name);
    const auto record = record_of(key, mask.cpus);
    auto planned = policy::plan::plan_host_mask(mask.cpus, record, avoided, instead);
    items.push_back({std::move(mask), std::move(key), std::move(planned), false, {}});
  }
  return items;
}

/// What a write that was begun came to is known only when it is read again, which an earlier helper
/// may not have lived to do.
std::optional<HostRecord> Keeper::record_of(const MaskKey& key, const CpuSet& now) const {
  const auto known = records_.masks.find(key);
  if (known == records_.masks.end()) return std::nullopt;
  HostRecord record = known->second;
  if (records_.begun.contains(key) && is_part_of_ours(now, record)) record.ours.push_back(now);
  return record;
}

bool Keeper::is_to_be_written(const Item& item) const {
  const bool is_there = item.plan.wanted == item.mask.cpus && !records_.begun.contains(item.key);
  return item.mask.fixed.empty() && !is_there && !refused_.contains(item.key);
}

/// What will be written is on disk before it is: false when it cannot be.
bool Keeper::record(const std::vector<Item>& items) {
  for (const Item& item : items) {
    if (!is_to_be_written(item)) continue;
    HostRecord& record = records_.masks[item.key];
    if (record.theirs != item.plan.theirs) record = {item.plan.theirs, {}};
    if (std::ranges::find(record.ours, item.plan.wanted) == record.ours.end()) {
      record.ours.push_back(item.plan.wanted);
    }
    records_.begun.insert(item.key);
  }
  const auto saved = file_.save(records_);
  if (saved) return true;
  is_unfinished_ = true;
  state_.kinds.push_back(
      {items.front().key.first,
       static_cast<int>(items.size()),
       0,
       {},
       "nothing is written, because it cannot be recorded: " + saved.error().message});
  return false;
}

void Keeper::write(const HostMasks& kind, Item& item) {
  const auto done = kind.write(item.mask, item.plan.wanted);
  item.is_written = done.has_value();
  if (done || is_gone(done)) return;
  item.problem = done.error().message;
  if (is_final_for_mask(done.error())) {
    records_.begun.erase(item.key);
    refused_[item.key] = "the kernel keeps it there: " + item.problem;
  } else {
    is_unfinished_ = true;
  }
}

/// What was written may come later, or be something else by the kernel's doing, which is ours all
/// the same. False: that cannot be known, and all that was recorded stays.
bool Keeper::reread(const HostMasks& kind, std::vector<Item>& items) {
  const auto found = kind.read();
  if (!found) {
    is_unfinished_ = true;
    state_.kinds.push_back(
        {std::string(kind.kind()), static_cast<int>(items.size()), 0, {}, found.error().message});
    return false;
  }
  std::map<std::string_view, const CpuSet*> now;
  for (const HostMask& mask : *found) now[mask.name] = &mask.cpus;
  for (Item& item : items) {
    const auto is_there = now.find(item.mask.name);
    const bool is_gone = is_there == now.end();
    item.mask.cpus = is_gone ? item.plan.theirs : *is_there->second;
    const bool is_done = item.is_written && item.mask.cpus == item.plan.wanted;
    if (is_gone || is_done) records_.begun.erase(item.key);
    if (!item.is_written) continue;
    HostRecord& record = records_.masks[item.key];
    record.ours = {item.plan.wanted};
    if (!is_done) record.ours.push_back(item.mask.cpus);
  }
  return true;
}

/// Nothing of ours is where a mask is gone, or as others wrote it and nothing of ours is under way.
void Keeper::drop_records(const std::vector<Item>& items, std::string_view kind) {
  std::set<MaskKey> held;
  for (const Item& item : items) {
    if (records_.begun.contains(item.key) || item.mask.cpus != item.plan.theirs)
      held.insert(item.key);
  }
  const auto is_over = [&](const MaskKey& key) { return key.first == kind && !held.contains(key); };
  std::erase_if(records_.masks, [&](const auto& entry) { return is_over(entry.first); });
  std::erase_if(records_.begun, is_over);
}

void Keeper::report(const HostMasks& kind, const std::vector<Item>& items) {
  KindState state{std::string(kind.kind()), static_cast<int>(items.size()), 0, {}, {}};
  const CpuSet avoided = avoided_by(kind);
  if (!kind.out_of_reach().empty() && !avoided.empty()) {
    state.left.push_back({std::string(kind.out_of_reach()), avoided, kOutOfReach});
  }
  for (const Item& item : items) {
    if (records_.masks.contains(item.key)) ++state.moved;
    if (!item.mask.cpus.intersects(avoided)) continue;
    state.left.push_back({item.mask.title, item.mask.cpus, why_left(item)});
  }
  state_.kinds.push_back(std::move(state));
}

std::string Keeper::why_left(const Item& item) const {
  if (!item.mask.fixed.empty()) return item.mask.fixed;
  const auto refused = refused_.find(item.key);
  if (refused != refused_.end()) return refused->second;
  if (!item.problem.empty()) return item.problem + "; tried again";
  if (item.is_written) return "written, and not in force yet";
  return item.plan.is_stuck ? "it would have no CPU left" : "written by another program since";
}

void Keeper::save() {
  const auto saved = file_.save(records_);
  if (saved) return;
  is_unfinished_ = true;
  log_.warning("cannot record what was written to the host",
               {{"file", file_.path().string()}, {"reason", saved.error().message}});
}

}  // namespace ka::helper
