// SPDX-License-Identifier: Apache-2.0
// A feature gate as kubelet is given it.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace ka::cli {

/// By the flags of the kubelet that runs, its drop-ins and its configuration, in this order, below
/// `root`; absent: none of them names the gate.
std::optional<bool> kubelet_gate(const std::filesystem::path& root, std::string_view name);

}  // namespace ka::cli
