// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/power_keeper.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/split.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;
using policy::CpuSet;

using policy::PowerProblem;
using policy::PowerRequest;
using policy::PowerRequests;

bool has_word(std::string_view text, std::string_view word) {
  return std::ranges::count(base::split(text, ' '), word) > 0;
}

/// "0 1 2"
CpuSet parse_numbers(std::string_view text) {
  CpuSet cpus;
  for (const std::string_view word : base::split(text, ' ')) {
    int cpu = -1;
    std::from_chars(word.data(), word.data() + word.size(), cpu);
    if (cpu >= 0 && cpu < policy::kMaxIds) cpus.add(cpu);
  }
  return cpus;
}

std::string problem_in(int cpu, const Result<void>& done) {
  return done ? std::string() : "CPU " + std::to_string(cpu) + ": " + done.error().message;
}

}  // namespace

PowerKeeper::PowerKeeper(const CpuPower& power, RecordFile<PowerRecords> file, const log::Log& log)
    : power_(power), file_(std::move(file)), log_(log) {}

void PowerKeeper::adopt() {
  auto records = file_.load();
  if (!records) {
    damage_ = file_.path().string() + ", of power settings: " + records.error().message +
              "; nothing is written: remove it and restart the helper";
    log_.error("cannot read which power settings an earlier helper changed; none is changed",
               {{"file", file_.path().string()}, {"reason", records.error().message}});
    return;
  }
  records_ = *std::move(records);
  for (const auto& [key, record] : records_.values) {
    if (!records_.requested.contains(key.first)) full_.add(key.first);
  }
}

void PowerKeeper::keep(const CpuSet& cpus) {
  full_ = cpus;
  check();
}

void PowerKeeper::request(PowerRequests requests) {
  records_.requested = std::move(requests);
  check();
}

PowerRequests PowerKeeper::requests() const {
  PowerRequests requests = records_.requested;
  for (const int cpu : full_) {
    PowerRequest& request = requests.try_emplace(cpu, policy::full_power()).first->second;
    if (request.latency.empty()) request.latency = policy::full_power().latency;
    if (!request.governor.empty()) continue;
    request.governor = policy::full_power().governor;
    request.is_required = false;
  }
  return requests;
}

void PowerKeeper::check() {
  problems_.clear();
  wanted_ = requests();
  for (const auto& [cpu, request] : wanted_) {
    if (!damage_.empty()) problems_[cpu] = {damage_, damage_};
  }
  if (!damage_.empty()) return;
  put_back();
  for (const auto& [cpu, request] : wanted_) {
    PowerProblem problem = bring(cpu, request);
    if (!problem.empty()) problems_[cpu] = std::move(problem);
  }
  save();
}

void PowerKeeper::put_back() {
  std::erase_if(records_.values, [this](const auto& entry) {
    const auto& [cpu, setting] = entry.first;
    const auto request = wanted_.find(cpu);
    const bool is_wanted = request != wanted_.end() &&
                           !(setting == PowerSetting::kLatency ? request->second.latency.empty()
                                                               : request->second.governor.empty());
    return !is_wanted && put_back(entry.first, entry.second);
  });
}

/// True: nothing of ours is there any more. What others have written since stays.
bool PowerKeeper::put_back(const Key& key, const PowerRecord& record) {
  const auto file = power_file(key.second);
  const auto now = power_.read(key.first, file);
  if (!now) return is_gone(now.error());
  if (*now != record.ours) return true;
  const auto done = power_.write(key.first, file, record.theirs);
  return done || is_gone(done.error());
}

/// How fast it wakes up and how fast it runs are apart: one that cannot be had is no reason to go
/// without the other.
PowerProblem PowerKeeper::bring(int cpu, const PowerRequest& request) {
  const auto latency = request.latency.empty() ? Result<void>() : bring_latency(cpu, request);
  const auto governor = request.governor.empty() ? Result<void>() : bring_frequency(cpu, request);
  return {problem_in(cpu, latency), problem_in(cpu, governor)};
}

Result<void> PowerKeeper::bring_latency(int cpu, const PowerRequest& request) {
  const auto file = power_file(PowerSetting::kLatency);
  if (request.is_required && is_gone(power_.read(cpu, file))) {
    return base::fail(ErrorCode::kUnavailable, "it has no " + std::string(file));
  }
  return bring({cpu, PowerSetting::kLatency}, request.latency);
}

/// A driver that has no governor "performance" may have such a preference instead.
Result<void> PowerKeeper::bring_frequency(int cpu, const PowerRequest& request) {
  for (const PowerSetting setting : {PowerSetting::kGovernor, PowerSetting::kPreference}) {
    const bool is_governor = setting == PowerSetting::kGovernor;
    if (!is_governor && request.governor != policy::full_power().governor) break;
    const auto offered = check_offered(cpu, setting, request.governor);
    if (is_gone(offered)) continue;
    if (!offered) return unexpected(offered.error());
    if (auto done = check_shared(cpu, request.governor); !done) return done;
    return is_governor ? bring_governor(cpu, request.governor)
                       : bring({cpu, setting}, request.governor);
  }
  if (!request.is_required) return {};
  return base::fail(ErrorCode::kUnavailable, "it has no governor " + request.governor);
}

/// A driver with a preference may change it with the governor, to the same, and not change it back.
/// What it is while the governor stays is others' doing.
Result<void> PowerKeeper::bring_governor(int cpu, const std::string& value) {
  const Key preference{cpu, PowerSetting::kPreference};
  const auto file = power_file(preference.second);
  const auto governor = power_.read(cpu, power_file(PowerSetting::kGovernor));
  if (governor && *governor == value) return {};
  if (const auto before = power_.read(cpu, file)) {
    PowerRecord& known = records_.values.try_emplace(preference, *before, *before).first->second;
    if (known.ours != *before) known.theirs = *before;
    known.ours = value;
  }
  auto done = bring({cpu, PowerSetting::kGovernor}, value);
  const auto after = power_.read(cpu, file);
  const auto record = records_.values.find(preference);
  if (after && record != records_.values.end()) record->second.ours = *after;
  return done;
}

/// kGone: it cannot have it.
Result<void> PowerKeeper::check_offered(int cpu, PowerSetting setting,
                                        const std::string& value) const {
  const auto offered = power_.read(cpu, setting == PowerSetting::kGovernor
                                            ? "cpufreq/scaling_available_governors"
                                            : "cpufreq/energy_performance_available_preferences");
  if (!offered) return unexpected(offered.error());
  if (has_word(*offered, value)) return {};
  return base::fail(ErrorCode::kGone, "it is not offered");
}

/// CPUs of one cpufreq policy have their frequency together.
Result<void> PowerKeeper::check_shared(int cpu, const std::string& governor) const {
  const auto text = power_.read(cpu, "cpufreq/affected_cpus");
  CpuSet others = text ? parse_numbers(*text) : CpuSet{};
  for (const auto& [same, request] : wanted_) {
    if (request.governor == governor) others.remove(same);
  }
  if (others.empty()) return {};
  return base::fail(ErrorCode::kConflict, "it shares its frequency with CPU " +
                                              policy::format_list(others) +
                                              ", which is not to have the same governor");
}

/// Another value of ours goes before this one comes: what others had stays on record.
Result<void> PowerKeeper::drop_other(const Key& key, const std::string& value) {
  const auto known = records_.values.find(key);
  if (known == records_.values.end() || known->second.ours == value) return {};
  if (!put_back(key, known->second)) {
    return base::fail(ErrorCode::kTransient, "what it had cannot be put back");
  }
  records_.values.erase(known);
  return {};
}

/// What others have is on disk before it is changed. A file that is not there needs nothing.
Result<void> PowerKeeper::bring(const Key& key, const std::string& value) {
  if (auto dropped = drop_other(key, value); !dropped) return dropped;
  const auto file = power_file(key.second);
  const auto now = power_.read(key.first, file);
  if (!now && is_gone(now.error())) return {};
  if (!now) return unexpected(now.error());
  if (*now == value) return {};
  records_.values[key] = {*now, value};
  if (!save()) return base::fail(ErrorCode::kTransient, "it cannot be recorded");
  auto done = power_.write(key.first, file, value);
  if (!done) return done;
  const auto again = power_.read(key.first, file);
  if (again && *again == value) return {};
  return base::fail(ErrorCode::kTransient, "the kernel did not keep its " + std::string(file));
}

std::string PowerKeeper::problem_of(const CpuSet& cpus) const {
  for (const auto& [cpu, problem] : problems_) {
    if (cpus.contains(cpu)) return problem.latency.empty() ? problem.governor : problem.latency;
  }
  return {};
}

bool PowerKeeper::save() {
  const auto saved = file_.save(records_);
  if (saved) return true;
  log_.warning("cannot record power settings",
               {{"file", file_.path().string()}, {"reason", saved.error().message}});
  return false;
}

}  // namespace ka::helper
