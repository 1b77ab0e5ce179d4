// SPDX-License-Identifier: Apache-2.0
#include "policy/facts/guest.hpp"

namespace ka::policy {

std::string_view guest_method_name(GuestMethod method) {
  switch (method) {
    case GuestMethod::kNone:
      return "none";
    case GuestMethod::kCgroupV2:
      return "cgroup-v2";
    case GuestMethod::kCgroupV1:
      return "cgroup-v1";
    case GuestMethod::kAffinity:
      return "affinity";
    case GuestMethod::kKataAgent:
      return "kata-agent";
  }
  return "none";
}

std::string_view guest_doubt_name(GuestDoubt doubt) {
  switch (doubt) {
    case GuestDoubt::kAgentAway:
      return "agent-away";
    case GuestDoubt::kNumbersUncertain:
      return "numbers-uncertain";
    case GuestDoubt::kVcpusMissing:
      return "vcpus-missing";
    case GuestDoubt::kUnanswered:
      return "unanswered";
    case GuestDoubt::kRefused:
      return "refused";
  }
  return "unanswered";
}

std::string_view guest_problem_name(GuestProblem problem) {
  switch (problem) {
    case GuestProblem::kNone:
      return "";
    case GuestProblem::kNotFound:
      return "not-found";
    case GuestProblem::kVcpuMissing:
      return "vcpu-missing";
    case GuestProblem::kNoVcpu:
      return "no-vcpu";
    case GuestProblem::kRefused:
      return "refused";
    case GuestProblem::kThreadsOutside:
      return "threads-outside";
  }
  return "";
}

std::string_view guest_idle_name(GuestIdle idle) {
  switch (idle) {
    case GuestIdle::kAsBefore:
      return "as-before";
    case GuestIdle::kPolling:
      return "polling";
    case GuestIdle::kNoDriver:
      return "no-driver";
    case GuestIdle::kOtherDriver:
      return "other-driver";
    case GuestIdle::kRefused:
      return "refused";
  }
  return "as-before";
}

}  // namespace ka::policy
