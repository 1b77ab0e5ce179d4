// SPDX-License-Identifier: Apache-2.0
// To which boot of the machine a file of ours belongs.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ka::base {

/// Success for a file that names the `present` boot (ProcFs::boot_id()). kGone for one that names
/// another. kInvalid for what names none, since the kernel's boot ids are UUIDs
/// (random(4): /proc/sys/kernel/random/boot_id).
Result<void> check_boot(std::string_view named, std::string_view present);

}  // namespace ka::base
