// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/interruptions.hpp"

#include <algorithm>

namespace ka::cli::noise {
namespace {

constexpr int kIdleTask = 0;

bool is_idle(const Cause& cause) { return cause == Cause{CauseKind::kTask, kIdleTask}; }

Usage& usage_of(CpuUsage& cpu, const Cause& cause) {
  const auto found = cpu.causes.find(cause);
  if (found != cpu.causes.end()) return found->second;
  return cpu.causes.size() < kMostCauses ? cpu.causes[cause] : cpu.rest;
}

void count(CpuUsage& cpu, const Cause& cause, const std::string& name) {
  if (is_idle(cause)) return;
  Usage& usage = usage_of(cpu, cause);
  ++usage.count;
  if (!name.empty()) usage.name = name;
}

void add_time(CpuUsage& cpu, const Cause& cause, Nanoseconds time) {
  if (is_idle(cause)) return;
  Usage& usage = usage_of(cpu, cause);
  usage.total += time;
  usage.longest = std::max(usage.longest, time);
}

}  // namespace

Interruptions::Interruptions(const std::set<int>& cpus, Nanoseconds start) : start_(start) {
  for (const int cpu : cpus) {
    cpus_[cpu].known_since = start;
    usage_[cpu];
  }
}

void Interruptions::add(const TraceEvent& event) {
  const auto cpu = cpus_.find(event.cpu);
  const bool is_lost = std::holds_alternative<Lost>(event.body);
  if (cpu == cpus_.end() || (event.at < start_ && !is_lost)) return;
  CpuUsage& usage = usage_[event.cpu];
  std::visit([&](const auto& body) { handle(cpu->second, usage, event, body); }, event.body);
  if (!is_lost) cpu->second.last = event.at;
}

/// What runs by an event. Where nothing was known to run, it has run since every event is seen.
/// Where something else was, that ran to the last event at least.
void Interruptions::record_task(Cpu& cpu, CpuUsage& usage, Nanoseconds at, int tid,
                                const std::string& name) {
  const Cause task{CauseKind::kTask, tid};
  Nanoseconds since = cpu.known_since.value_or(at);
  if (!cpu.stack.empty()) {
    const Frame& known = cpu.stack.front();
    if (known.cause == task) return;
    ++usage.missed;
    add_time(usage, known.cause, cpu.last - known.since - known.nested);
    since = at;
  }
  cpu.stack.assign(1, {task, since, {}});
  count(usage, task, name);
}

void Interruptions::handle(Cpu& cpu, CpuUsage& usage, const TraceEvent& event,
                           const Switch& change) {
  ++usage.events;
  record_task(cpu, usage, event.at, change.from, change.from_name);
  const Frame& task = cpu.stack.front();
  add_time(usage, task.cause, event.at - task.since - task.nested);
  cpu.known_since = event.at;
  cpu.stack.assign(1, {{CauseKind::kTask, change.to}, event.at, {}});
  count(usage, cpu.stack.front().cause, change.to_name);
}

void Interruptions::handle(Cpu& cpu, CpuUsage& usage, const TraceEvent& event, const Begin& begin) {
  ++usage.events;
  // The kernel gives no number for a task that is ending.
  if (event.running >= 0 || cpu.stack.empty()) record_task(cpu, usage, event.at, event.running, {});
  cpu.stack.push_back({begin.cause, event.at, {}});
  count(usage, begin.cause, begin.name);
}

/// One that began before the start, or whose beginning was lost, has no frame.
void Interruptions::handle(Cpu& cpu, CpuUsage& usage, const TraceEvent& event, const End& end) {
  ++usage.events;
  if (cpu.stack.size() < 2 || cpu.stack.back().cause != end.cause) return;
  const Frame ended = cpu.stack.back();
  cpu.stack.pop_back();
  const Nanoseconds whole = event.at - ended.since;
  cpu.stack.back().nested += whole;
  add_time(usage, ended.cause, whole - ended.nested);
}

void Interruptions::handle(Cpu& cpu, CpuUsage& usage, const TraceEvent&, const Lost& lost) {
  usage.lost += lost.events;
  cpu.stack.clear();
  cpu.known_since.reset();
}

void Interruptions::finish(Nanoseconds end) {
  for (auto& [number, cpu] : cpus_) {
    if (cpu.stack.empty()) continue;
    const Frame& task = cpu.stack.front();
    add_time(usage_[number], task.cause, end - task.since - task.nested);
    cpu.stack.clear();
  }
}

}  // namespace ka::cli::noise
