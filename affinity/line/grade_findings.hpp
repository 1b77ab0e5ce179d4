// SPDX-License-Identifier: Apache-2.0
// What verify finds of grades.
#pragma once

#include <vector>

#include "affinity/line/report.hpp"
#include "affinity/line/views.hpp"

namespace ka::host {
struct RealtimeLimits;
}

namespace ka::line {

/// A sandbox that has not the grade that it is to have, or has one without all that may belong to
/// it; a grade that it requests and does not get. As the helper last reported it: after a change,
/// and after each check for drift.
void collect_grade(const SandboxView& view, VerifyReport& report);

/// What the kernel leaves to others on CPUs of a realtime sandbox.
void collect_realtime_limits(const SandboxView& view, const host::RealtimeLimits& limits,
                             VerifyReport& report);

/// The same of pods without a VM.
void collect_grades(const std::vector<PlainPodView>& pods, VerifyReport& report);

}  // namespace ka::line
