// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/cpu_power.hpp"

#include "base/files.hpp"
#include "base/newline.hpp"

namespace ka::helper {

using base::Result;

std::filesystem::path CpuPowerFiles::path_of(int cpu, std::string_view file) const {
  return sys_ / "devices/system/cpu" / ("cpu" + std::to_string(cpu)) / file;
}

Result<std::string> CpuPowerFiles::read(int cpu, std::string_view file) const {
  auto text = base::read_file(path_of(cpu, file));
  return text ? base::without_newline(*std::move(text)) : std::move(text);
}

Result<void> CpuPowerFiles::write(int cpu, std::string_view file, const std::string& value) const {
  return base::write_kernel_file(path_of(cpu, file), value + '\n');
}

}  // namespace ka::helper
