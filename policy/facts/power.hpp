// SPDX-License-Identifier: Apache-2.0
// How deeply a CPU may idle, and who chooses its frequency: values of the kernel's files.
#pragma once

#include <map>
#include <string>

namespace ka::policy {

struct PowerRequest {
  std::string latency;       ///< of pm_qos_resume_latency_us; empty: as it is
  std::string governor;      ///< of scaling_governor; empty: as it is
  bool is_required = false;  ///< where the machine has no such governor, that is a problem

  bool operator==(const PowerRequest&) const = default;
};

/// It never idles, and runs at full frequency, as far as the machine lets anybody say so.
inline const PowerRequest& full_power() {
  static const PowerRequest kFull{"n/a", "performance", false};
  return kFull;
}

/// By CPU.
using PowerRequests = std::map<int, PowerRequest>;

/// Why a CPU has not what is requested for it; empty: it has.
struct PowerProblem {
  std::string latency, governor;

  bool empty() const { return latency.empty() && governor.empty(); }
  bool operator==(const PowerProblem&) const = default;
};

/// By CPU.
using PowerProblems = std::map<int, PowerProblem>;

}  // namespace ka::policy
