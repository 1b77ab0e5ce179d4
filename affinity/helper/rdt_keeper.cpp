// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/rdt_keeper.hpp"

#include <algorithm>
#include <cerrno>

#include "affinity/helper/rdt_facts.hpp"
#include "affinity/host/undo.hpp"
#include "affinity/messages/rdt.hpp"
#include "base/newline.hpp"
#include "base/text.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;
using policy::ThreadKey;
using policy::plan::RdtFacts;
using policy::plan::Schemata;

constexpr std::size_t kMostStatus = 256;

std::string directory_of(const std::string& name) { return std::string(kRdtPrefix) + name; }

std::string path_of(const RdtHome& home) {
  const std::string group = home.group.empty() ? "" : home.group + '/';
  return home.monitor.empty() ? group : group + "mon_groups/" + home.monitor + '/';
}

/// The way into a monitor has two writes: where a helper was killed between them it ends here.
bool is_half_way(const RdtHome& now, const RdtHome& home) {
  return !home.monitor.empty() && now == RdtHome{home.group, {}};
}

Result<void> write_task(const Resctrl& resctrl, const ThreadKey& thread, const RdtHome& home) {
  return resctrl.write(path_of(home) + "tasks", std::to_string(thread.tid) + '\n');
}

/// To the root where its group is gone. Only threads of a group can be in a monitor of it.
Result<void> write_home(const Resctrl& resctrl, const ThreadKey& thread, const RdtHome& home) {
  const auto exists = home.group.empty() ? Result<bool>(true) : resctrl.has(home.group);
  if (!exists) return unexpected(exists.error());
  auto done = write_task(resctrl, thread, {*exists ? home.group : std::string(), {}});
  if (done && *exists && !home.monitor.empty()) (void)write_task(resctrl, thread, home);
  return done;
}

/// A thread begins in its starter's group: task_struct is copied (dup_task_struct() in
/// kernel/fork.c).
struct RdtAccess {
  Result<RdtHome> get(const ThreadKey& thread) const { return resctrl.home(thread); }
  Result<void> set(const ThreadKey& thread, const RdtHome& home) const {
    return write_home(resctrl, thread, home);
  }
  static RdtHome inherited(const RdtHome& starters) { return starters; }

  const Resctrl& resctrl;
};

ThreadWriter<RdtHome>::Access access_of(const Resctrl& resctrl, const VmmThreads& threads) {
  return {[threads](const ThreadKey& thread) { return threads.check_identity(thread); },
          [&resctrl](const ThreadKey& thread, const RdtHome& home) {
            return write_home(resctrl, thread, home);
          },
          [&resctrl, threads](const ThreadKey& thread, const RdtHome& written) {
            return host::undo_value(thread, written, RdtAccess{resctrl}, threads.proc());
          }};
}

}  // namespace

RdtKeeper::RdtKeeper(const Resctrl& resctrl, VmmThreads threads, RecordFile<RdtRecords> file,
                     const log::Log& log)
    : resctrl_(resctrl),
      threads_(std::move(threads)),
      writer_(access_of(resctrl, threads_)),
      file_(std::move(file)),
      log_(log) {}

/// What was held is held on, until something else is wanted.
void RdtKeeper::adopt() {
  auto records = file_.load();
  if (!records) {
    is_damaged_ = true;
    state_.problem = file_.path().string() + ", of groups of resctrl: " + records.error().message +
                     "; nothing is written: remove it and restart the helper (what was made lasts "
                     "until the next boot)";
    log_.error("cannot read which groups of resctrl an earlier helper made; none is made",
               {{"file", file_.path().string()}, {"reason", records.error().message}});
    return;
  }
  records_ = *std::move(records);
  for (const auto& [name, shares] : records_.groups) wanted_.push_back({name, shares, {}});
  for (RdtGroup& group : wanted_) {
    for (const auto& [thread, task] : records_.tasks) {
      if (task.name == group.name) group.tasks.push_back(thread);
    }
  }
}

void RdtKeeper::keep(std::vector<RdtGroup> wanted) {
  wanted_ = std::move(wanted);
  check();
}

/// Groups that are not wanted go first: the hardware has few.
void RdtKeeper::check() {
  if (is_damaged_) return;
  is_unfinished_ = false;
  state_ = {};
  if (!holds()) return;
  const auto before = records_.groups;
  if (const auto facts = read_rdt_facts(resctrl_)) {
    bring(*facts);
  } else {
    lose(facts.error());
  }
  report(before);
}

void RdtKeeper::bring(const RdtFacts& facts) {
  writer_.check_unsettled();
  Targets wanted = targets(facts);
  put_back(wanted);
  establish(wanted, facts);
  put_back(wanted);
  place(wanted);
  save();
}

void RdtKeeper::report(const Groups& before) const {
  for (const auto& [name, shares] : before) {
    if (!records_.groups.contains(name)) {
      log_.info("a group of resctrl is gone", {{"group", directory_of(name)}});
    }
  }
  for (const auto& [name, shares] : records_.groups) {
    if (!before.contains(name)) {
      log_.info("a group of resctrl is made", {{"group", directory_of(name)}});
    }
  }
}

/// Where it is not mounted any more, its groups went with it.
void RdtKeeper::lose(const base::Error& error) {
  state_.problem = error.message;
  for (const RdtGroup& group : wanted_) state_.groups.push_back({group.name, {}, {}, {}});
  if (error.code != ErrorCode::kUnavailable) return;
  records_ = {};
  save();
  if (wanted_.empty()) state_.problem.clear();
}

/// What the machine can give, by class; state_ has a row for each group that is wanted.
RdtKeeper::Targets RdtKeeper::targets(const RdtFacts& facts) {
  Targets targets;
  for (const RdtGroup& group : wanted_) {
    RdtGroupState& state = state_.groups.emplace_back();
    state.name = group.name;
    for (const ThreadKey& thread : group.tasks) state.tasks.push_back({thread, {}});
    auto schemata = policy::plan::schemata_of(group.shares, facts);
    if (!schemata) {
      state.problem = messages::rdt_obstacle_text(schemata.error());
      continue;
    }
    state.schemata = policy::plan::format_schemata(*schemata);
    targets[group.name] = *std::move(schemata);
  }
  return targets;
}

// --- put back

void RdtKeeper::put_back(const Targets& targets) {
  std::set<ThreadKey> wanted;
  for (const RdtGroup& group : wanted_) {
    if (targets.contains(group.name)) wanted.insert(group.tasks.begin(), group.tasks.end());
  }
  std::erase_if(records_.tasks, [&](const auto& entry) {
    const bool stays = wanted.contains(entry.first) && targets.contains(entry.second.name);
    return !stays && put_back(entry.first, entry.second);
  });
  std::erase_if(records_.groups, [&](const auto& entry) {
    return !targets.contains(entry.first) && remove(entry.first);
  });
}

/// True: nothing of ours is there any more. Where another program has moved it since, it stays.
bool RdtKeeper::put_back(const ThreadKey& thread, const RdtTask& task) {
  const auto home = resctrl_.home(thread);
  const auto is_there = home ? threads_.check_identity(thread) : unexpected(home.error());
  if (!is_there) {
    is_unfinished_ |= !is_gone(is_there.error());
    return is_gone(is_there.error());
  }
  if (home->group != directory_of(task.name) && !is_half_way(*home, task.theirs)) return true;
  const auto done = writer_.write(thread, task.theirs);
  if (done || is_gone(done)) return true;
  is_unfinished_ = true;
  return false;
}

bool RdtKeeper::remove(const std::string& name) {
  for (const auto& [thread, task] : records_.tasks) {
    if (task.name == name) return false;
  }
  const auto done = resctrl_.remove(directory_of(name));
  if (done || is_gone(done.error())) return true;
  is_unfinished_ = true;
  return false;
}

// --- groups

/// Only what is there remains in `targets`.
void RdtKeeper::establish(Targets& targets, const RdtFacts& facts) {
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const auto target = targets.find(wanted_[i].name);
    if (target == targets.end()) continue;
    const auto done = establish(wanted_[i], target->second, facts);
    if (done) continue;
    state_.groups[i].problem = done.error().message;
    targets.erase(target);
  }
}

Result<void> RdtKeeper::establish(const RdtGroup& group, const Schemata& schemata,
                                  const RdtFacts& facts) {
  const std::string directory = directory_of(group.name);
  const auto exists = resctrl_.has(directory);
  if (!exists) return unexpected(exists.error());
  if (*exists && !records_.groups.contains(group.name)) {
    return base::fail(ErrorCode::kConflict,
                      "there is a group " + directory + " that the helper has not made");
  }
  if (!*exists) {
    if (auto made = make(group, facts); !made) return made;
  }
  records_.groups[group.name] = group.shares;
  return bring(group.name, schemata);
}

/// What will be made is on disk before it is.
Result<void> RdtKeeper::make(const RdtGroup& group, const RdtFacts& facts) {
  records_.groups[group.name] = group.shares;
  if (!save()) {
    records_.groups.erase(group.name);
    return base::fail(ErrorCode::kTransient, "it is not made, because it cannot be recorded");
  }
  const std::string directory = directory_of(group.name);
  const auto made = resctrl_.make(directory);
  if (made) return {};
  records_.groups.erase(group.name);
  if (made.error().number != ENOSPC) {
    return base::fail(made.error().code, explain(made.error()));
  }
  return base::fail(ErrorCode::kConflict, "no group is left: the machine has " +
                                              std::to_string(facts.groups) + ", with the root (" +
                                              explain(made.error()) + ')');
}

/// What the kernel makes of it is read again.
Result<void> RdtKeeper::bring(const std::string& name, const Schemata& schemata) {
  const std::string path = directory_of(name) + "/schemata";
  const auto is_there = [&] {
    const auto text = resctrl_.read(path);
    const auto now = text ? policy::plan::parse_schemata(*text) : std::nullopt;
    return now && policy::plan::holds(*now, schemata);
  };
  if (is_there()) return {};
  if (auto done = resctrl_.write(path, policy::plan::format_schemata(schemata)); !done) {
    return base::fail(done.error().code, explain(done.error()));
  }
  if (is_there()) return {};
  return base::fail(ErrorCode::kTransient, "the kernel did not keep its schemata");
}

// --- threads

/// Where each thread was is on disk before it is moved.
void RdtKeeper::place(const Targets& targets) {
  std::vector<Move> moves;
  for (RdtGroupState& group : state_.groups) {
    if (!targets.contains(group.name)) continue;
    for (RdtTaskState& task : group.tasks) prepare(group.name, task, moves);
  }
  if (moves.empty()) return;
  const bool is_saved = save();
  for (const Move& one : moves) {
    if (is_saved) {
      move(one);
    } else {
      one.state->problem = "it is not moved, because that cannot be recorded";
    }
  }
}

void RdtKeeper::prepare(const std::string& name, RdtTaskState& task, std::vector<Move>& moves) {
  const auto checked = threads_.check(task.thread);
  const auto home = checked ? resctrl_.home(task.thread) : unexpected(checked.error());
  if (!home) {
    task.problem = home.error().message;
    is_unfinished_ |= !is_gone(home.error()) && home.error().code != ErrorCode::kConflict;
    return;
  }
  RdtTask& record = records_.tasks.try_emplace(task.thread, RdtTask{name, {}}).first->second;
  if (!is_ours(home->group) && !is_half_way(*home, record.theirs)) record.theirs = *home;
  record.name = name;
  if (home->group != directory_of(name)) moves.push_back({task.thread, name, &task});
}

void RdtKeeper::move(const Move& move) {
  auto done = writer_.write(move.thread, {directory_of(move.name), {}});
  if (done) {
    const auto home = resctrl_.home(move.thread);
    if (home && home->group == directory_of(move.name)) return;
    done = base::fail(ErrorCode::kTransient, "the kernel did not move it");
  }
  move.state->problem = explain(done.error());
  is_unfinished_ |= !is_gone(done.error());
}

bool RdtKeeper::is_ours(const std::string& group) const {
  return group.starts_with(kRdtPrefix) && records_.groups.contains(group.substr(kRdtPrefix.size()));
}

/// With the kernel's own words, where it has any.
std::string RdtKeeper::explain(const base::Error& error) const {
  const auto status = base::without_newline(resctrl_.read("info/last_cmd_status").value_or(""));
  if (error.number == 0 || status.empty() || status == "ok") return error.message;
  return error.message + ": " + base::printable(status, kMostStatus);
}

bool RdtKeeper::save() {
  const auto saved = file_.save(records_);
  if (saved) return true;
  is_unfinished_ = true;
  log_.warning("cannot record groups of resctrl",
               {{"file", file_.path().string()}, {"reason", saved.error().message}});
  return false;
}

}  // namespace ka::helper
