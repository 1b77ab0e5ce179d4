// SPDX-License-Identifier: Apache-2.0
// Other programs that give containers their CPUs through the container runtime's NRI.
#pragma once

#include <filesystem>
#include <string>

#include "base/process.hpp"

namespace ka::host {

/// Those of the known ones (movers.hpp) that run now and can reach `socket`, the runtime's NRI
/// socket: "dracpu (pid 812)"; empty: none. A runtime has no list of its plugins for another, and
/// a process can bear any name: one that is not root's, or has no mount with the socket's
/// directory, as containers have none, is no plugin. One whose owner or mounts cannot be read
/// counts.
std::string running_cpu_plugins(const base::ProcFs& proc, const std::filesystem::path& socket);

}  // namespace ka::host
