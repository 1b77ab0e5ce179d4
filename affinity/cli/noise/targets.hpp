// SPDX-License-Identifier: Apache-2.0
// Which CPUs are looked at, and what may run there: the daemon's word, put in order.
#pragma once

#include <boost/json/fwd.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "affinity/cli/client/sandbox_name.hpp"
#include "affinity/cli/noise/tasks.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli::noise {

/// A container that owns a CPU.
struct Owner {
  std::string pod, pod_name;  ///< its pod's id and "namespace/name"; either may be empty
  std::string title;          ///< "shop/cart, container app"
};

/// One CPU.
struct Target {
  std::vector<Owner> owners;         ///< empty: nobody owns it
  std::vector<std::string> tenants;  ///< "vCPU 2 of shop/cart"
  std::set<int> vcpus;               ///< threads of the vCPUs that are dedicated to it
  std::set<std::string> containers;  ///< ids of owners that run no VM: their processes may be there
};

using Targets = std::map<int, Target>;

/// All CPUs that somebody owns, from the responses to GET /v1/node and GET /v1/sandboxes.
Targets read_targets(const boost::json::value& node, const boost::json::value& sandboxes);

/// The pods of the owners, by id, "namespace/name" and name.
std::vector<Named> pods_of(const Targets& targets);

/// Those that the pod owns.
Targets owned_by(const Targets& targets, const std::string& pod);

/// These CPUs, whoever owns them.
Targets among(const Targets& targets, const policy::CpuSet& cpus);

/// Whether a task is one that the CPU is for. `task`: null: it is not known.
bool is_tenant(const Target& target, int tid, const TaskFacts* task);

}  // namespace ka::cli::noise
