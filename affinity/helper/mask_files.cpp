// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/mask_files.hpp"

#include "base/files.hpp"

namespace ka::helper {

using base::Result;
using policy::CpuSet;
using policy::CpuTag;

Result<CpuSet> read_cpus(const std::filesystem::path& file, SetFormat format) {
  const auto text = base::read_file(file);
  if (!text) return unexpected(text.error());
  auto cpus = format == SetFormat::kList ? policy::parse_list<CpuTag>(*text)
                                         : policy::parse_mask<CpuTag>(*text);
  if (!cpus) return base::fail(base::ErrorCode::kInvalid, file.string() + " holds no set of CPUs");
  return *std::move(cpus);
}

Result<void> write_cpus(const std::filesystem::path& file, SetFormat format, const CpuSet& cpus) {
  const std::string text =
      format == SetFormat::kList ? policy::format_list(cpus) : policy::format_mask(cpus);
  return base::write_kernel_file(file, text + '\n');
}

Result<CpuSet> read_possible(const std::filesystem::path& sys) {
  return read_cpus(sys / "devices/system/cpu/possible", SetFormat::kList);
}

}  // namespace ka::helper
