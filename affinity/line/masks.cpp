// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/masks.hpp"

#include <algorithm>
#include <utility>

namespace ka::line {

using policy::CpuSet;
using Left = std::pair<int, CpuSet>;

void Masks::remember(const std::vector<ThreadView>& threads) {
  left_.clear();
  left_.reserve(threads.size());
  for (const ThreadView& thread : threads) left_.emplace_back(thread.facts.key.tid, thread.actual);
  std::ranges::sort(left_, {}, &Left::first);
}

const CpuSet* Masks::left(int tid) const {
  const auto found = std::ranges::lower_bound(left_, tid, {}, &Left::first);
  return found == left_.end() || found->first != tid ? nullptr : &found->second;
}

bool Masks::are_as_left(const std::vector<ThreadView>& threads, host::AffinityCalls& calls) const {
  return std::ranges::all_of(threads, [&](const ThreadView& thread) {
    const CpuSet* before = left(thread.facts.key.tid);
    const auto actual = calls.get(thread.facts.key.tid);
    return before != nullptr && actual && *actual == *before;
  });
}

std::vector<ChangedMask> Masks::changed(const std::vector<ThreadView>& threads,
                                        host::AffinityCalls& calls) const {
  std::vector<ChangedMask> changed;
  for (const ThreadView& thread : threads) {
    const CpuSet* before = left(thread.facts.key.tid);
    const auto actual = calls.get(thread.facts.key.tid);
    if (before == nullptr || !actual || *actual == *before) continue;
    // Its planned mask: an obstacle has gone.
    if (*actual != thread.wanted) changed.push_back({&thread, *before, *actual});
  }
  return changed;
}

void Masks::remember_original(const ThreadView& thread, const CpuSet& allowed) {
  const policy::ThreadKey& key = thread.facts.key;
  if (key.pid != key.tid || !thread.seen) return;
  const auto known = originals_.find(key.pid);
  if (known != originals_.end() && known->second.start_time == key.start_time) return;
  state::Original original;
  if (const state::Original* parents = inherited(thread, allowed)) {
    original = *parents;
  } else {
    original.everywhere = thread.actual == allowed;
    original.cpus = original.everywhere ? CpuSet{} : thread.actual;
  }
  original.start_time = key.start_time;
  originals_[key.pid] = std::move(original);
  is_new_ = true;
}

/// Of a process that was born with the mask that we had given to one of the sandbox's (a VMM, by
/// its shim): what that one had before. Null for others.
const state::Original* Masks::inherited(const ThreadView& thread, const CpuSet& allowed) const {
  const auto parent = std::ranges::find_if(originals_, [&](const auto& entry) {
    const CpuSet* given = left(entry.first);
    return entry.second.start_time < thread.facts.key.start_time && given != nullptr &&
           (*given & allowed) == thread.actual;
  });
  return parent == originals_.end() ? nullptr : &parent->second;
}

void Masks::keep_originals(const std::function<bool(int)>& is_there) {
  std::erase_if(originals_, [&](const auto& entry) { return !is_there(entry.first); });
}

CpuSet Masks::original_of(int pid, const CpuSet& allowed) const {
  const auto found = originals_.find(pid);
  CpuSet original;
  if (narrowed_by_proxy_) {
    original = *narrowed_by_proxy_;
  } else if (found != originals_.end() && !found->second.everywhere) {
    original = found->second.cpus;
  }
  if (allowed.empty()) return original;
  original &= allowed;
  return original.empty() ? allowed : original;
}

void Masks::set_placed() {
  is_placed_ = true;
  freed_.clear();
}

bool Masks::is_to_be_freed(const policy::ThreadKey& thread) const {
  return is_placed_ && !freed_.contains(thread);
}

void Masks::refuse(const policy::ThreadKey& thread, std::string reason) {
  refused_[thread] = std::move(reason);
}

const std::string* Masks::refusal(const policy::ThreadKey& thread) const {
  const auto found = refused_.find(thread);
  return found == refused_.end() ? nullptr : &found->second;
}

}  // namespace ka::line
