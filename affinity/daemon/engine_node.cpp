// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/engine_node.hpp"

#include <algorithm>
#include <utility>

#include "affinity/board/board.hpp"
#include "affinity/engine/engine.hpp"

namespace ka::daemon {
namespace {

using policy::ledger::Event;

bool is_placed(const std::vector<engine::ThreadView>& threads) {
  return !threads.empty() &&
         std::ranges::none_of(threads, [](const auto& thread) { return thread.drifted(); });
}

source::SandboxState to_state(const engine::SandboxView& view) {
  source::SandboxState state{.pod = view.pod, .plan = view.plan, .cgroup = view.cgroup};
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

void EngineNode::handle(const std::vector<Event>& events) { engine_.handle(events); }

void EngineNode::narrow(const std::vector<Event>& events, const base::Deadline& deadline) {
  engine_.narrow(events, deadline.remaining(clock_));
}

void EngineNode::finish(std::string_view sandbox) { engine_.finish(sandbox); }

void EngineNode::observe(std::string_view sandbox) { engine_.look_again(sandbox); }

void EngineNode::spoke(policy::ledger::Source source) { engine_.source_spoke(source); }

void EngineNode::set_status(policy::ledger::Source source, source::Status status) {
  board_.set_source(source, {status.up, std::move(status.text)});
}

void EngineNode::count_answer(std::chrono::nanoseconds took) {
  board_.counters().answers.add(took);
}

void EngineNode::count_narrowed_shim(const std::string& sandbox, std::chrono::nanoseconds age) {
  board_.record_narrowed_shim(sandbox, age);
}

const policy::ledger::Ledger& EngineNode::ledger() const { return engine_.ledger(); }

const policy::Topology& EngineNode::topology() const { return engine_.topology(); }

bool EngineNode::may_widen() const { return engine_.gate().may_widen(); }

std::vector<std::string> EngineNode::sandbox_ids() const { return engine_.sandbox_ids(); }

std::optional<source::SandboxState> EngineNode::sandbox(std::string_view id) const {
  const auto view = engine_.view(id);
  return view ? std::optional(to_state(*view)) : std::nullopt;
}

}  // namespace ka::daemon
