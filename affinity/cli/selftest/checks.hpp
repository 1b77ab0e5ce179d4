// SPDX-License-Identifier: Apache-2.0
// Whether the threads of the self-test's pod are where they must be, witness by witness. Pure.
#pragma once

#include <boost/json/value.hpp>
#include <string>

#include "affinity/cli/selftest/assignments.hpp"
#include "affinity/cli/selftest/finding.hpp"
#include "affinity/cli/selftest/reader.hpp"

namespace ka::cli::selftest {

/// The pod that is checked.
struct Subject {
  std::string uid;
  int cpus = 0;  ///< that its container asks for
  /// Who assigned them. Where no kubelet runs, nobody keeps other containers off them.
  Finding::By by = Finding::By::kKubelet;
};

/// The daemon's responses to GET /v1/node, GET /v1/sandboxes and POST /v1/verify.
struct DaemonWord {
  boost::json::value node;
  boost::json::value sandboxes;
  boost::json::value report;
};

/// Whether the pod has its CPUs.
Findings check_assignment(const Assignments& assignments, const Subject& subject);

/// Whether containerd runs the pod, with vCPUs that KVM knows.
Findings check_start(const Reading& reading);

/// Whether the kernel holds the threads of the pod, and of all others, to the assignment.
Findings check_masks(const Assignments& assignments, const Subject& subject,
                     const Reading& reading);

/// Whether the daemon knows the pod's VM.
Findings check_discovery(const Subject& subject, const boost::json::value& sandboxes);

/// Whether the daemon agrees with the assignment and the kernel.
Findings check_report(const Assignments& assignments, const Subject& subject,
                      const Reading& reading, const DaemonWord& word);

}  // namespace ka::cli::selftest
