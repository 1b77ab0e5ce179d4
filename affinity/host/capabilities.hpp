// SPDX-License-Identifier: Apache-2.0
// Capabilities without which a part of a VMM stays unseen.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace ka::host {

/// What a process cannot see for want of which capability; empty: it has all. `process` is its
/// directory in /proc.
base::Result<std::string> unseen_without_capabilities(const std::filesystem::path& process);

/// Who may have taken them.
inline constexpr const char* kCapabilityRemedy =
    "check CapabilityBoundingSet= of the daemon's unit, or the security context of its container";

}  // namespace ka::host
