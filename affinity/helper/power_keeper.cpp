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

/// "No latency is tolerated": the CPU polls while it idles. 0 would mean "any is".
constexpr const char* kNoLatency = "n/a";
constexpr const char* kPerformance = "performance";

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
  for (const auto& [key, record] : records_.values) wanted_.add(key.first);
}

void PowerKeeper::keep(const CpuSet& cpus) {
  wanted_ = cpus;
  check();
}

void PowerKeeper::check() {
  problems_.clear();
  for (const int cpu : wanted_) {
    if (!damage_.empty()) problems_[cpu] = damage_;
  }
  if (!damage_.empty()) return;
  put_back();
  for (const int cpu : wanted_) {
    const auto done = bring(cpu);
    if (!done) problems_[cpu] = "CPU " + std::to_string(cpu) + ": " + done.error().message;
  }
  save();
}

void PowerKeeper::put_back() {
  std::erase_if(records_.values, [this](const auto& entry) {
    return !wanted_.contains(entry.first.first) && put_back(entry.first, entry.second);
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

/// A driver that has no such governor may have a preference instead.
Result<void> PowerKeeper::bring(int cpu) {
  auto done = bring({cpu, PowerSetting::kLatency}, kNoLatency);
  if (!done) return done;
  for (const PowerSetting setting : {PowerSetting::kGovernor, PowerSetting::kPreference}) {
    const auto value = full_speed(cpu, setting);
    if (!value && is_gone(value.error())) continue;
    if (!value) return unexpected(value.error());
    if (done = check_shared(cpu); !done) return done;
    return setting == PowerSetting::kGovernor ? bring_governor(cpu, *value)
                                              : bring({cpu, setting}, *value);
  }
  return {};
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
Result<std::string> PowerKeeper::full_speed(int cpu, PowerSetting setting) const {
  const auto offered = power_.read(cpu, setting == PowerSetting::kGovernor
                                            ? "cpufreq/scaling_available_governors"
                                            : "cpufreq/energy_performance_available_preferences");
  if (!offered) return unexpected(offered.error());
  if (has_word(*offered, kPerformance)) return kPerformance;
  return base::fail(ErrorCode::kGone, "it is not offered");
}

/// CPUs of one cpufreq policy have their frequency together.
Result<void> PowerKeeper::check_shared(int cpu) const {
  const auto text = power_.read(cpu, "cpufreq/affected_cpus");
  const CpuSet others = text ? parse_numbers(*text) - wanted_ : CpuSet{};
  if (others.empty()) return {};
  return base::fail(ErrorCode::kConflict, "it shares its frequency with CPU " +
                                              policy::format_list(others) +
                                              ", which is not at full power");
}

/// What others have is on disk before it is changed. A file that is not there needs nothing.
Result<void> PowerKeeper::bring(const Key& key, const std::string& value) {
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
    if (cpus.contains(cpu)) return problem;
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
