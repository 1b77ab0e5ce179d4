// SPDX-License-Identifier: Apache-2.0
// How deeply a CPU may idle, and how fast it runs: files of sysfs, where a machine has them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace ka::helper {

/// What a file of a CPU is for. Its path below cpuN is its name: power_file().
enum class PowerSetting {
  kLatency,     ///< how long it may take to wake up (Documentation/ABI/testing/sysfs-devices-power)
  kGovernor,    ///< who chooses its frequency (Documentation/admin-guide/pm/cpufreq.rst)
  kPreference,  ///< of a driver that chooses itself (amd-pstate, intel_pstate)
};

inline constexpr PowerSetting kPowerSettings[] = {PowerSetting::kLatency, PowerSetting::kGovernor,
                                                  PowerSetting::kPreference};

constexpr std::string_view power_file(PowerSetting setting) {
  if (setting == PowerSetting::kLatency) return "power/pm_qos_resume_latency_us";
  if (setting == PowerSetting::kGovernor) return "cpufreq/scaling_governor";
  return "cpufreq/energy_performance_preference";
}

class CpuPower {
 public:
  CpuPower() = default;
  CpuPower(const CpuPower&) = delete;
  CpuPower& operator=(const CpuPower&) = delete;
  virtual ~CpuPower() = default;

  /// `file`: its path below cpuN. Without the newline. kGone: the machine, or this CPU, has none.
  virtual base::Result<std::string> read(int cpu, std::string_view file) const = 0;
  virtual base::Result<void> write(int cpu, std::string_view file,
                                   const std::string& value) const = 0;
};

class CpuPowerFiles final : public CpuPower {
 public:
  explicit CpuPowerFiles(std::filesystem::path sys) : sys_(std::move(sys)) {}

  base::Result<std::string> read(int cpu, std::string_view file) const override;
  base::Result<void> write(int cpu, std::string_view file, const std::string& value) const override;

 private:
  std::filesystem::path path_of(int cpu, std::string_view file) const;

  std::filesystem::path sys_;
};

}  // namespace ka::helper
