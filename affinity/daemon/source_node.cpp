// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/source_node.hpp"

#include <algorithm>
#include <utility>

#include "affinity/board/board.hpp"
#include "affinity/host/cgroup_names.hpp"
#include "affinity/line/line.hpp"

namespace ka::daemon {
namespace {

using policy::ledger::Event;

bool is_placed(const std::vector<line::ThreadView>& threads) {
  return !threads.empty() &&
         std::ranges::none_of(threads, [](const auto& thread) { return thread.drifted(); });
}

source::SandboxState to_state(const line::SandboxView& view) {
  source::SandboxState state{.pod = view.pod,
                             .plan = view.plan,
                             .cgroup = view.cgroup,
                             .pod_uid = host::pod_uid_of(view.cgroup)};
  state.cgroup_managed = view.cgroup_managed;
  state.observed = view.observed;
  state.released = view.released;
  state.placed = is_placed(view.threads);
  for (const auto& thread : view.threads) state.processes.insert(thread.facts.key.pid);
  state.moves_memory = view.moves_memory();
  if (view.memory != nullptr) {
    state.memory.emplace(view.memory->facts, view.memory->plan, view.memory->moving);
  }
  return state;
}

}  // namespace

void SourceNode::handle(const std::vector<Event>& events) { line_.handle(events); }

void SourceNode::narrow(const std::vector<Event>& events, const base::Deadline& deadline) {
  line_.narrow(events, deadline.remaining(clock_));
}

void SourceNode::finish(std::string_view sandbox) { line_.finish(sandbox); }

void SourceNode::observe(std::string_view sandbox) { line_.refresh(sandbox); }

void SourceNode::synced(policy::ledger::Source source) { line_.source_synced(source); }

void SourceNode::set_status(policy::ledger::Source source, source::Status status) {
  board_.set_source(source,
                    {status.up, std::move(status.text), status.absent, std::move(status.unseen)});
}

void SourceNode::set_late(policy::ledger::Source source, const std::optional<base::Error>& why) {
  board_.set_late(source, why);
}

void SourceNode::count_answer(std::chrono::nanoseconds elapsed) {
  board_.counters().answers.add(elapsed);
}

void SourceNode::count_narrowed_shim(const std::string& sandbox, std::chrono::nanoseconds age) {
  board_.record_narrowed_shim(sandbox, age);
}

const policy::ledger::Ledger& SourceNode::ledger() const { return line_.node().ledger(); }

const policy::Topology& SourceNode::topology() const { return line_.node().topology; }

bool SourceNode::may_widen() const { return line_.node().gate().may_widen(); }

std::vector<std::string> SourceNode::sandbox_ids() const { return line_.node().sandbox_ids(); }

std::optional<source::SandboxState> SourceNode::sandbox(std::string_view id) const {
  const auto view = line_.node().view(id);
  return view ? std::optional(to_state(*view)) : std::nullopt;
}

}  // namespace ka::daemon
