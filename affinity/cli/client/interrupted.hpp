// SPDX-License-Identifier: Apache-2.0
// The daemon's counts of what interrupts dedicated vCPUs, read leniently.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <vector>

#include "affinity/messages/interruptions.hpp"

namespace ka::cli {

/// Of one CPU.
struct InterruptedCpu {
  long long cpu = 0, vcpu = 0;
  std::string sandbox, pod_name;
  messages::Interrupted count;
};

/// Of the member "interruptions" of a sandbox or of GET /v1/node.
std::vector<InterruptedCpu> interrupted_of(const boost::json::value& document);
/// Why nothing is counted; empty: it is.
std::string uncounted_of(const boost::json::value& document);

}  // namespace ka::cli
