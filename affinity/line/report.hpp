// SPDX-License-Identifier: Apache-2.0
// The report of verify(): how much of the node was read, the findings, and the verdict that
// follows from both.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/id_set.hpp"

namespace ka::line {

/// The severity of a finding.
enum class Severity {
  kNote,      ///< informational, no action needed
  kDegraded,  ///< the plan is kept, and an exclusive container has less than its CPUs alone
  kViolated,  ///< the kernel has something else than the invariants allow
  kUnknown,   ///< something that had to be read was not
};

/// "note", "degraded", "violated", "unknown".
std::string_view severity_name(Severity severity);

/// One thing that verify() found, by re-reading the kernel.
struct Finding {
  Severity severity = Severity::kViolated;
  std::string invariant;  ///< "I1" ... "I8", "drift", "grade", "guest", "unread", "start", "late"
  std::string sandbox;
  std::string subject;  ///< thread, vCPU or container
  policy::CpuSet wanted, actual;
  std::string text;
  std::string reason;  ///< stable name for machines; may be empty
  std::string remedy;  ///< the remedy: a setting or a command; may be empty
};

enum class Verdict { kOk, kDegraded, kUnknown, kViolated };

/// "ok", "degraded", "unknown", "violated".
std::string_view verdict_name(Verdict verdict);

/// What was read of a node, or what there is to read.
struct Extents {
  int sandboxes = 0;
  int threads = 0;
};

struct VerifyReport {
  Extents seen;        ///< read, each thread with its mask
  Extents known;       ///< that should have been read; what ended meanwhile is not among them
  int released = 0;    ///< of the sandboxes read, the released ones: held to no invariant
  int interrupts = 0;  ///< of passed-through devices
  std::vector<Finding> findings;

  /// The gravest of the findings: violated, then unknown, then degraded, then ok. A violation that
  /// was seen is certain whatever else could not be read, so it comes before unknown. Notes leave
  /// it at ok.
  Verdict verdict() const;
  /// Neither violated nor unknown.
  bool ok() const;
  /// Puts the gravest findings first, and leaves those that are equally grave in their order.
  void sort();
};

}  // namespace ka::line
