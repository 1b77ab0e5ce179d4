// SPDX-License-Identifier: Apache-2.0
// The report of a self-test: what to attach to a bug report.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/cli/selftest/demonstration.hpp"
#include "affinity/cli/selftest/finding.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli::selftest {

enum class Verdict {
  kKept,         ///< the container has its CPUs to itself, and the daemon agrees
  kDegraded,     ///< pinned, but not isolated, or its guest was not seen
  kViolated,     ///< the kernel, kubelet and the daemon do not agree
  kCannotRun,    ///< this node does not run the self-test's pods
  kInterrupted,  ///< by a signal
  kCleaned,      ///< asked for no more than to clean up
};

/// "kept", "degraded", "violated", "cannot-run", "interrupted" or "cleaned".
std::string_view verdict_name(Verdict verdict);

/// How the program ends.
Exit exit_of(Verdict verdict);

struct Step {
  std::string text;
  double began = 0;    ///< seconds since the start of the self-test
  double seconds = 0;  ///< until everything held, or the time was up
  Findings findings;   ///< the last ones
};

struct Report {
  Verdict verdict = Verdict::kKept;
  std::string reason;        ///< why it is not kKept; empty where it is
  boost::json::object node;  ///< versions and settings
  std::vector<Step> steps;
  std::optional<Demonstration> demo;  ///< absent: not requested, or not completed
};

/// The document of `selftest --json`.
boost::json::object to_json(const Report& report);

/// The same as text.
std::string describe(const Report& report);

}  // namespace ka::cli::selftest
