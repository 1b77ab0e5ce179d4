// SPDX-License-Identifier: Apache-2.0
// Messages about isolation: exclusive containers with their CPUs to themselves, and obstacles.
#pragma once

#include <string>

#include "policy/plan/isolation.hpp"

namespace ka::messages {

/// "CPU 2 also carries emulator, vhost".
std::string obstacle_text(const policy::plan::NotIsolated& obstacle);

/// The remedy for an obstacle of a sandbox: a setting or a command.
std::string remedy_text(const policy::plan::NotIsolated& obstacle, const std::string& sandbox);

/// "container c1 (app) is isolated on CPUs 2-3", or the obstacles.
std::string isolation_text(const policy::plan::ContainerIsolation& container);

/// The obstacles' stable names, with ", " between; empty: it is isolated.
std::string obstacle_names(const policy::plan::ContainerIsolation& container);

}  // namespace ka::messages
