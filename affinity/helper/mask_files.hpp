// SPDX-License-Identifier: Apache-2.0
// Files of the kernel that hold one set of CPUs.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::helper {

/// How a file writes it: "0-3,8", or in hexadecimal digits.
enum class SetFormat { kList, kMask };

/// kInvalid: it holds something else.
base::Result<policy::CpuSet> read_cpus(const std::filesystem::path& file, SetFormat format);
base::Result<void> write_cpus(const std::filesystem::path& file, SetFormat format,
                              const policy::CpuSet& cpus);
/// All that the kernel could ever have (Documentation/admin-guide/cputopology.rst).
base::Result<policy::CpuSet> read_possible(const std::filesystem::path& sys);

}  // namespace ka::helper
