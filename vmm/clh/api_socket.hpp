// SPDX-License-Identifier: Apache-2.0
// Where a Cloud Hypervisor listens.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ka::clh {

using Arguments = std::vector<std::string>;

/// By the name of its program.
bool is_cloud_hypervisor(const Arguments& command_line);

/// Whose choice a VMM's command line is.
enum class Origin {
  kRuntime,   ///< a runtime's: sockets lie in its own folders (base::runtime_socket)
  kOperator,  ///< a person's who named the VMM: anywhere
};

/// The API's socket of a Cloud Hypervisor: what its command line says (--api-socket PATH or
/// path=PATH) where that lies where its origin may put it, else where Kata has put it below `run`
/// (Go: vc/vm/ID/clh-api.sock; runtime-rs: kata/ID/ch-api.sock). It serves several clients at once.
/// Empty where there is no such socket.
std::optional<std::filesystem::path> find_api_socket(const Arguments& command_line, Origin origin,
                                                     const std::filesystem::path& run,
                                                     const std::string& sandbox);

}  // namespace ka::clh
