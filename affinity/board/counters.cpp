// SPDX-License-Identifier: Apache-2.0
#include "affinity/board/counters.hpp"

namespace ka::board {
namespace {

std::uint64_t count(int number) { return static_cast<std::uint64_t>(number); }

}  // namespace

Outcome::Errors& Outcome::Errors::operator+=(const Errors& more) {
  permission += more.permission;
  transient += more.transient;
  other += more.other;
  unreadable += more.unreadable;
  return *this;
}

Outcome& Outcome::operator+=(const Outcome& other) {
  runs += other.runs;
  planned += other.planned;
  writes += other.writes;
  failed += other.failed;
  gone += other.gone;
  late += other.late;
  interrupts += other.interrupts;
  cgroups += other.cgroups;
  classes += other.classes;
  errors += other.errors;
  duration += other.duration;
  return *this;
}

void Counters::record(const Outcome& outcome) {
  runs += count(outcome.runs);
  writes += count(outcome.writes);
  threads_gone += count(outcome.gone);
  late += count(outcome.late);
  interrupt_writes += count(outcome.interrupts);
  cgroup_writes += count(outcome.cgroups);
  resource_class_writes += count(outcome.classes);
  errors["permission"] += count(outcome.errors.permission);
  errors["transient"] += count(outcome.errors.transient);
  errors["other"] += count(outcome.errors.other);
  errors["unreadable"] += count(outcome.errors.unreadable);
  if (outcome.writes > 0) reactions.add(outcome.duration);
}

void Counters::record_drift(int found, int failed) {
  drift_found += count(found);
  drift_repaired += count(std::max(0, found - failed));
}

}  // namespace ka::board
