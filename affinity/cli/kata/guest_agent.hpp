// SPDX-License-Identifier: Apache-2.0
// The guest agent's program on this node, where the package has it for guests.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace ka::cli {

/// kNotFound: it is not installed beside this program.
base::Result<std::filesystem::path> find_guest_agent();

}  // namespace ka::cli
