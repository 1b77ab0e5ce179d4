// SPDX-License-Identifier: Apache-2.0
// What a sandbox's RDT classes have come to: kata-affinity-helper writes them, not the line.
#pragma once

#include <string>

#include "affinity/line/views.hpp"

namespace ka::line {

/// Why a vCPU's thread does not have its class; empty: it has.
std::string rdt_problem(const SandboxView& view, const RdtVcpu& one);

/// Why a container does not have the class that it is granted: the first of its threads that has
/// not. Empty: it has, or it is no RDT class, or it is refused.
std::string rdt_problem(const SandboxView& view, const policy::plan::RequestedClass& request);

/// How many threads do not have their class; 0 where the sandbox is released.
int count_without_rdt(const SandboxView& view);

}  // namespace ka::line
