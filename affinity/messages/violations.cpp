// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/violations.hpp"

namespace ka::messages {

std::string sentence(policy::plan::Breach breach) {
  switch (breach) {
    case policy::plan::Breach::kOutside:
      return "may run outside the sandbox mask and housekeeping";
    case policy::plan::Breach::kForeignCpu:
      return "may run on a CPU that is exclusive to another pod";
    case policy::plan::Breach::kNotOneCpu:
      return "is dedicated and does not have exactly one CPU";
    case policy::plan::Breach::kCpuTaken:
      return "shares its CPU with another dedicated vCPU";
    case policy::plan::Breach::kNotAlone:
      return "may run on the CPU of a dedicated vCPU";
    case policy::plan::Breach::kNotDedicated:
      return "lacks dedicated vCPUs that it could have";
    case policy::plan::Breach::kVcpuNotOwn:
      return "runs on vCPUs that serve another container";
    case policy::plan::Breach::kSiblingsApart:
      return "has guest siblings on different cores that could share one";
    case policy::plan::Breach::kUnstable:
      return "would move if it were planned again";
    case policy::plan::Breach::kWidened:
      return "runs outside the CPUs of its container";
    case policy::plan::Breach::kNoVcpu:
      return "has no vCPU";
  }
  return "breaks an invariant";
}

std::string sentence(const policy::plan::GuestBreach& breach) {
  std::string text = "container " + breach.container + " may run on guest CPUs " +
                     policy::format_list(breach.actual) + " instead of " +
                     policy::format_list(breach.wanted);
  const auto problem = policy::guest_problem_name(breach.problem);
  return problem.empty() ? text : text + " (" + std::string(problem) + ')';
}

}  // namespace ka::messages
