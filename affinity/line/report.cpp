// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/report.hpp"

#include <algorithm>
#include <functional>

namespace ka::line {
namespace {

Verdict verdict_for(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return Verdict::kOk;
    case Severity::kDegraded:
      return Verdict::kDegraded;
    case Severity::kUnknown:
      return Verdict::kUnknown;
    case Severity::kViolated:
      return Verdict::kViolated;
  }
  return Verdict::kViolated;
}

}  // namespace

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kDegraded:
      return "degraded";
    case Severity::kViolated:
      return "violated";
    case Severity::kUnknown:
      return "unknown";
  }
  return "";
}

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kDegraded:
      return "degraded";
    case Verdict::kUnknown:
      return "unknown";
    case Verdict::kViolated:
      return "violated";
  }
  return "";
}

Verdict VerifyReport::verdict() const {
  Verdict worst = Verdict::kOk;
  for (const Finding& finding : findings) worst = std::max(worst, verdict_for(finding.severity));
  return worst;
}

void VerifyReport::sort() {
  std::ranges::stable_sort(findings, std::ranges::greater{},
                           [](const Finding& finding) { return verdict_for(finding.severity); });
}

bool VerifyReport::ok() const { return verdict() <= Verdict::kDegraded; }

}  // namespace ka::line
