// SPDX-License-Identifier: Apache-2.0
// Keeps CPUs at full power: they wake up without delay and run at full frequency, as far as the
// machine lets anybody say so.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "affinity/helper/cpu_power.hpp"
#include "affinity/helper/power_records.hpp"
#include "affinity/helper/record_file.hpp"
#include "base/log/log.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::helper {

class PowerKeeper {
 public:
  /// `power` and `log` must outlive it.
  PowerKeeper(const CpuPower& power, RecordFile<PowerRecords> file, const log::Log& log);

  /// Takes over what an earlier helper recorded. Where that cannot be read, nothing is ever
  /// written.
  void adopt();
  /// From now on these CPUs are at full power, and no others; empty: all is put back.
  void keep(const policy::CpuSet& cpus);
  /// Reads all again, and repairs it.
  void check();

  bool holds() const { return !wanted_.empty() || !records_.empty(); }
  const std::filesystem::path& file() const { return file_.path(); }
  /// Why nothing can be written; empty: it can.
  const std::string& problem() const { return damage_; }
  /// Why some of these are not at full power, as the last check() found it; empty: they are.
  std::string problem_of(const policy::CpuSet& cpus) const;

 private:
  using Key = std::pair<int, PowerSetting>;

  void put_back();
  bool put_back(const Key& key, const PowerRecord& record);
  base::Result<void> bring(int cpu);
  base::Result<void> bring(const Key& key, const std::string& value);
  base::Result<void> bring_governor(int cpu, const std::string& value);
  base::Result<std::string> full_speed(int cpu, PowerSetting setting) const;
  base::Result<void> check_shared(int cpu) const;
  bool save();

  const CpuPower& power_;
  RecordFile<PowerRecords> file_;
  const log::Log& log_;
  policy::CpuSet wanted_;
  PowerRecords records_;
  std::string damage_;  ///< why what an earlier helper changed is not known; empty: it is
  std::map<int, std::string> problems_;  ///< by CPU
};

}  // namespace ka::helper
