// SPDX-License-Identifier: Apache-2.0
// The answer of `noise`: for each CPU, what ran there that it is not for.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>

#include "affinity/cli/noise/interrupt_files.hpp"
#include "affinity/cli/noise/interruptions.hpp"
#include "affinity/cli/noise/stolen.hpp"
#include "affinity/cli/noise/targets.hpp"
#include "affinity/cli/noise/tasks.hpp"

namespace ka::cli::noise {

/// What is known of what ran.
struct Machine {
  const Tasks& tasks;
  const InterruptFiles& interrupts;
};

/// {"seconds":10.0,"cpus":[{"cpu":4,"owners":[...],"tenants":[...],"complete":true,"lost":0,"missed":0,
/// "seen":true,"count":3,"total_us":41.5,"stolen_ms":0,"causes":[{"kind":"task","id":17,
/// "name":"kworker/4:1","cgroup":"","count":2,"total_us":..,"longest_us":..,"movable":"no",
/// "by":"..."}]}]}; the causes with the most time first.
boost::json::object to_json(const Targets& targets, const Interruptions& seen,
                            const Machine& machine, const Stolen& stolen,
                            std::chrono::nanoseconds time);

/// The same as text.
std::string describe(const boost::json::value& report);

}  // namespace ka::cli::noise
