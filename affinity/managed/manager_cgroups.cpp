// SPDX-License-Identifier: Apache-2.0
// What the cgroups of runc containers have, and what they are to have.
#include "affinity/managed/allocations.hpp"
#include "affinity/managed/manager.hpp"

namespace ka::managed {

using board::NotificationKind;
using policy::managed::Entry;

namespace {

/// What `sets` says where `other` differs: "2-3", "nodes 1", "2-3, nodes 1".
std::string differing(const AllowedSets& sets, const AllowedSets& other) {
  std::string text;
  if (sets.cpus != other.cpus) text = '"' + policy::format_list(sets.cpus) + '"';
  if (sets.mems == other.mems) return text;
  return text + (text.empty() ? "" : ", ") + "memory nodes \"" + policy::format_list(sets.mems) +
         '"';
}

}  // namespace

base::Result<std::optional<Manager::Mismatch>> Manager::mismatch(
    const std::string& container) const {
  const auto known = books_.entries().find(container);
  if (known == books_.entries().end() || !running_.contains(container)) return std::nullopt;
  const std::string& cgroup = known->second.about.cgroup;
  AllowedSets wanted{books_.cpus_of(container) & with_.node.topology().online(), {}};
  if (wanted.cpus.empty()) return std::nullopt;
  const auto read = cpusets_.read(cgroup, container);
  if (!read) return unexpected(read.error());
  const std::optional<AllowedSets>& actual = *read;
  if (!actual) return std::nullopt;
  const policy::NodeSet mems = mems_of(container);
  wanted.mems = mems.empty() ? actual->mems : mems;
  if (*actual == wanted) return std::nullopt;
  return Mismatch{*actual, std::move(wanted)};
}

/// A runtime that restarts on a busy node loses containers whose shims answer too late (containerd:
/// "unexpected task status"); they run on, and others must not get their CPUs.
void Manager::add_unlisted(Listing& listing) {
  unlisted_.clear();
  for (const auto& [id, entry] : books_.entries()) {
    if (entry.ended || listing.running.contains(id) || !is_running(id)) continue;
    const auto known = running_.find(id);
    const Running running =
        known != running_.end() ? known->second : Running{books_.cpus_of(id), entry.mems};
    listing.containers.push_back({entry.about, running.written});
    listing.sandboxes.insert(entry.about.sandbox);
    listing.running[id] = running;
    unlisted_.insert(id);
    with_.board.notify(NotificationKind::kContainerUnlisted, entry.about.sandbox,
                       title(entry) +
                           " runs, and the runtime does not have it: it keeps its CPUs " +
                           "until its cgroup is empty",
                       {}, id);
  }
}

std::set<std::string> Manager::ended_unlisted() const {
  std::set<std::string> ended;
  for (const std::string& id : unlisted_) {
    if (!is_running(id)) ended.insert(id);
  }
  return ended;
}

bool Manager::is_running(const std::string& container) const {
  const auto known = books_.entries().find(container);
  return known != books_.entries().end() &&
         cpusets_.is_running(known->second.about.cgroup, container);
}

/// Those that become narrower first.
std::deque<std::string> Manager::mismatched() const {
  std::deque<std::string> all;
  std::deque<std::string> wider;
  for (const auto& [id, running] : running_) {
    const auto found = mismatch(id).value_or(std::nullopt);
    if (found) (found->wanted.cpus.subset_of(found->actual.cpus) ? all : wider).push_back(id);
  }
  all.insert(all.end(), wider.begin(), wider.end());
  return all;
}

void Manager::write_mismatched() {
  unwritten_ = mismatched();
  write_cpusets();
}

/// As many as fit into this turn of the loop.
void Manager::write_cpusets() {
  const auto turn = base::Deadline::in(with_.clock, kTurn);
  while (!unwritten_.empty() && turn.remaining(with_.clock).count() > 0) {
    const std::string id = std::move(unwritten_.front());
    unwritten_.pop_front();
    write_cpuset(id);
  }
  if (unwritten_.empty()) {
    if (std::exchange(is_unfinished_, false)) with_.node.finish({});
    return;
  }
  if (std::exchange(is_turn_due_, true)) return;
  with_.later([this] {
    is_turn_due_ = false;
    write_cpusets();
  });
}

void Manager::write_cpuset(const std::string& container) {
  const auto found = mismatch(container).value_or(std::nullopt);
  if (!found) return;
  const Entry& entry = books_.entries().at(container);
  const auto written = cpusets_.write(entry.about.cgroup, container, found->actual, found->wanted);
  with_.board.notify(NotificationKind::kCpusetWritten, entry.about.sandbox,
                     title(entry) + ": cgroup had " + differing(found->actual, found->wanted) +
                         ", " +
                         (written ? "now " + differing(found->wanted, found->actual)
                                  : "cannot be written: " + written.error().message),
                     written ? "" : written.error().message, container);
}

}  // namespace ka::managed
