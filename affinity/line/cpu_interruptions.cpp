// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/cpu_interruptions.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "affinity/line/sandbox.hpp"

namespace ka::line {
namespace {

/// Counters of one CPU that are read one after the other need not match to the slice.
std::int64_t slices_of_others(const host::CpuCounters& cpu, const host::ThreadCounters& own) {
  return static_cast<std::int64_t>(cpu.slices) - static_cast<std::int64_t>(own.slices);
}

std::uint64_t at_least_none(std::int64_t count) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
}

Interruptions operator-(const Interruptions& now, const Interruptions& before) {
  return {now.slices - before.slices, now.nanoseconds - before.nanoseconds,
          now.interrupts - before.interrupts, now.passed_through - before.passed_through};
}

void operator+=(Interruptions& total, const Interruptions& more) {
  total.slices += more.slices;
  total.nanoseconds += more.nanoseconds;
  total.interrupts += more.interrupts;
  total.passed_through += more.passed_through;
}

std::int64_t grown(std::uint64_t from, std::uint64_t to) {
  return static_cast<std::int64_t>(to) - static_cast<std::int64_t>(from);
}

}  // namespace

CpuInterruptions::Tenancies CpuInterruptions::now_dedicated() const {
  Tenancies tenancies;
  for (const auto& [id, sandbox] : node_.sandboxes) {
    if (sandbox->plan() == nullptr) continue;
    for (const ThreadView& thread : sandbox->threads()) {
      if (thread.facts.role != policy::Role::kVcpu || thread.actual.size() != 1) continue;
      const auto* vcpu = sandbox->plan()->find_vcpu(thread.facts.vcpu_index);
      const bool is_dedicated = vcpu != nullptr && vcpu->role == policy::plan::VcpuRole::kDedicated;
      if (!is_dedicated || vcpu->cpus != thread.actual) continue;
      tenancies[thread.actual.first()] = {id, vcpu->index, thread.facts.key, node_.clock.now(), {}};
    }
  }
  return tenancies;
}

CpuInterruptions::Own CpuInterruptions::read_own(const Tenancies& tenancies) const {
  Own own;
  for (const auto& [cpu, tenancy] : tenancies) {
    if (const auto counters = host::thread_counters(node_.roots.proc, tenancy.thread)) {
      own[cpu] = *counters;
    }
  }
  return own;
}

/// The vCPUs are read before and after their CPUs: what they do meanwhile is never another's.
void CpuInterruptions::read() {
  const Tenancies now = now_dedicated();
  if (now.empty()) {
    tenancies_.clear();
    problem_.clear();
    return;
  }
  const Own before = read_own(now);
  const auto counters = host::cpu_counters(node_.roots.proc);
  problem_ = counters ? "" : counters.error().message;
  if (!counters) return;
  const Own after = read_own(now);
  const auto ends = [&](const auto& one) {
    const auto next = now.find(one.first);
    return next == now.end() || next->second.thread != one.second.thread;
  };
  std::erase_if(tenancies_, ends);
  for (const auto& [cpu, tenancy] : now) {
    const auto of_cpu = counters->find(cpu);
    if (of_cpu == counters->end() || !before.contains(cpu) || !after.contains(cpu)) continue;
    if (tenancies_.contains(cpu)) {
      go_on(cpu, of_cpu->second, after.at(cpu));
    } else {
      begin(cpu, tenancy, of_cpu->second, before.at(cpu));
    }
  }
}

void CpuInterruptions::begin(int cpu, const Tenancy& tenancy, const host::CpuCounters& counters,
                             const host::ThreadCounters& own) {
  tenancies_[cpu] = tenancy;
  totals_.try_emplace(cpu);
  bases_[cpu] = {slices_of_others(counters, own), 0, counters, own.ran, node_.clock.now()};
}

void CpuInterruptions::go_on(int cpu, const host::CpuCounters& counters,
                             const host::ThreadCounters& own) {
  Interruptions& count = tenancies_.at(cpu).count;
  Base& base = bases_.at(cpu);
  const Interruptions before = count;
  const auto slices = slices_of_others(counters, own) - base.first;
  count.slices = std::max(count.slices, at_least_none(slices));
  count.interrupts += at_least_none(grown(base.cpu.interrupts, counters.interrupts));
  count.passed_through += at_least_none(grown(base.cpu.passed_through, counters.passed_through));
  base.cpu.interrupts = counters.interrupts;
  base.cpu.passed_through = counters.passed_through;
  if (count.slices == base.slices) {
    base = {base.first, count.slices, counters, own.ran, node_.clock.now()};
  } else if (const auto time = time_of_others(base, counters, own)) {
    count.nanoseconds += *time;
    base = {base.first, count.slices, counters, own.ran, node_.clock.now()};
  }
  totals_[cpu] += count - before;
}

/// The CPU's time lacks the task that runs now, and gets all of it when it leaves: the time of
/// others is what the CPU has more than the vCPU, as far as the vCPU left that much. Absent: the
/// vCPU runs on, and the next reading knows.
std::optional<std::uint64_t> CpuInterruptions::time_of_others(
    const Base& base, const host::CpuCounters& counters, const host::ThreadCounters& own) const {
  const std::chrono::nanoseconds wall = node_.clock.now() - base.at;
  const auto ran = grown(base.ran, own.ran);
  const auto others = grown(base.cpu.ran, counters.ran) - ran;
  if (others < 0) return std::nullopt;
  return std::min(at_least_none(others), at_least_none(wall.count() - ran));
}

}  // namespace ka::line
