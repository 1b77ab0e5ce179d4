// SPDX-License-Identifier: Apache-2.0
// Power settings of CPUs, as sysfs has them, and refusals on demand.
#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "affinity/helper/cpu_power.hpp"

namespace ka::tests {

class FakeCpuPower final : public helper::CpuPower {
 public:
  base::Result<std::string> read(int cpu, std::string_view file) const override {
    const auto found = values.find(name_of(cpu, file));
    if (found == values.end()) return base::fail_errno(ENOENT, std::string(file));
    return found->second;
  }

  base::Result<void> write(int cpu, std::string_view file,
                           const std::string& value) const override {
    if (before_write) before_write(file);
    if (refused.contains(name_of(cpu, file))) return base::fail_errno(EINVAL, std::string(file));
    if (!values.contains(name_of(cpu, file))) return base::fail_errno(ENOENT, std::string(file));
    ++writes;
    values[name_of(cpu, file)] = value;
    return {};
  }

  /// "2/cpufreq/scaling_governor"
  static std::string name_of(int cpu, std::string_view file) {
    return std::to_string(cpu) + '/' + std::string(file);
  }

  mutable std::map<std::string, std::string> values;
  std::set<std::string> refused;
  mutable int writes = 0;
  std::function<void(std::string_view file)> before_write;
};

}  // namespace ka::tests
