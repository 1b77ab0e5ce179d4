// SPDX-License-Identifier: Apache-2.0
// Keeps CPUs at full power, or at what pods request: how fast they wake up, and who chooses their
// frequency, as far as the machine lets anybody say so.
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
#include "policy/facts/power.hpp"

namespace ka::helper {

class PowerKeeper {
 public:
  /// `power` and `log` must outlive it.
  PowerKeeper(const CpuPower& power, RecordFile<PowerRecords> file, const log::Log& log);

  /// Takes over what an earlier helper recorded. Where that cannot be read, nothing is ever
  /// written.
  void adopt();
  /// From now on these CPUs are at full power, beside those with a request of their own.
  void keep(const policy::CpuSet& cpus);
  /// From now on these CPUs have what is requested, which comes before full power. What is in
  /// neither is put back.
  void request(policy::PowerRequests requests);
  /// Reads all again, and repairs it.
  void check();

  bool holds() const { return !full_.empty() || !records_.empty(); }
  const std::filesystem::path& file() const { return file_.path(); }
  /// Why nothing can be written; empty: it can.
  const std::string& problem() const { return damage_; }
  /// Why some of these are not as wanted, as the last check() found it; empty: they are.
  std::string problem_of(const policy::CpuSet& cpus) const;
  const policy::PowerRequests& requested() const { return records_.requested; }
  /// Of all that are wanted, as the last check() found them.
  const policy::PowerProblems& problems() const { return problems_; }

 private:
  using Key = std::pair<int, PowerSetting>;

  policy::PowerRequests requests() const;
  void put_back();
  bool put_back(const Key& key, const PowerRecord& record);
  policy::PowerProblem bring(int cpu, const policy::PowerRequest& request);
  base::Result<void> bring_latency(int cpu, const policy::PowerRequest& request);
  base::Result<void> bring_frequency(int cpu, const policy::PowerRequest& request);
  base::Result<void> bring(const Key& key, const std::string& value);
  base::Result<void> drop_other(const Key& key, const std::string& value);
  base::Result<void> bring_governor(int cpu, const std::string& value);
  base::Result<void> check_offered(int cpu, PowerSetting setting, const std::string& value) const;
  base::Result<void> check_shared(int cpu, const std::string& governor) const;
  bool save();

  const CpuPower& power_;
  RecordFile<PowerRecords> file_;
  const log::Log& log_;
  policy::CpuSet full_;  ///< at full power
  PowerRecords records_;
  policy::PowerRequests wanted_;  ///< of both, as of the last check()
  std::string damage_;            ///< why what an earlier helper changed is not known; empty: it is
  policy::PowerProblems problems_;
};

}  // namespace ka::helper
