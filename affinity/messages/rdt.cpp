// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/rdt.hpp"

namespace ka::messages {

using policy::plan::RdtRefusal;

std::string rdt_obstacle_text(const policy::plan::RdtObstacle& obstacle) {
  const std::string what = obstacle.key == "mba"  ? "memory bandwidth"
                           : obstacle.key == "l2" ? "the L2 cache"
                                                  : "the L3 cache";
  switch (obstacle.refusal) {
    case RdtRefusal::kNoSuchWays:
      return what + " has fewer ways";
    case RdtRefusal::kGaps:
      return "ways of " + what + " must be neighbours";
    case RdtRefusal::kTooFewWays:
      return "fewer ways than the least of " + what + " (min_cbm_bits)";
    case RdtRefusal::kNoPercent:
      return what + " is not counted in percent here";
    case RdtRefusal::kAbsent:
      break;
  }
  return "resctrl does not control " + what + " here";
}

}  // namespace ka::messages
