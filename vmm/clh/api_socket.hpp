// Where a Cloud Hypervisor listens.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "vmm/facts/facts.hpp"

namespace ka::clh {

/// By the name of its program.
bool is_cloud_hypervisor(const vmm::Roots& roots, int pid);

/// The API's socket of a Cloud Hypervisor: what its command line says (--api-socket PATH or
/// path=PATH), else where Kata has put it below `run` (Go: vc/vm/ID/clh-api.sock; runtime-rs:
/// kata/ID/ch-api.sock). It serves several clients at once. Empty where there is no such socket.
std::optional<std::filesystem::path> find_api_socket(const vmm::Roots& roots,
                                                     const std::filesystem::path& run, int pid,
                                                     const std::string& sandbox);

}  // namespace ka::clh
