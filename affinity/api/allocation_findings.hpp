// SPDX-License-Identifier: Apache-2.0
// What verify finds of the CPUs that we gave to containers (mode = "managed").
#pragma once

#include "affinity/line/report.hpp"
#include "affinity/managed/manager.hpp"

namespace ka::api {

/// Containers whose cgroups have other CPUs than they were given; those that have not the CPUs or
/// the class that they are to have; allocations that are not on disk.
void collect_allocations(const managed::Manager& manager, line::VerifyReport& report);

}  // namespace ka::api
