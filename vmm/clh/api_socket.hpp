// SPDX-License-Identifier: Apache-2.0
// Where a Cloud Hypervisor listens.
#pragma once

#include <filesystem>
#include <optional>

#include "vmm/facts/monitor.hpp"

namespace ka::clh {

/// The API's socket of a Cloud Hypervisor (by the name of its program): the one in its command line
/// (--api-socket PATH or path=PATH), by an operator anywhere, by a runtime in its own directories
/// only (base::runtime_socket); else where Kata has put it below `run` (Go: vc/vm/ID/clh-api.sock;
/// runtime-rs: kata/ID/ch-api.sock). It serves several clients at once. Empty where there is no
/// such socket.
std::optional<std::filesystem::path> find_socket(const vmm::Probe& probe);

}  // namespace ka::clh
