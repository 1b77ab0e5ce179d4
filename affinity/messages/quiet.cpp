// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/quiet.hpp"

#include "affinity/messages/terms.hpp"

namespace ka::messages {

using policy::plan::NotQuiet;

std::string obstacle_text(const policy::plan::QuietObstacle& obstacle) {
  const std::string& subject = obstacle.subject;
  switch (obstacle.reason) {
    case NotQuiet::kDisabled:
      return "enable is false";
    case NotQuiet::kReleased:
      return "it is released";
    case NotQuiet::kObserved:
      return "mode is \"observe\", nothing is written";
    case NotQuiet::kNotDedicated:
      return "none of its vCPUs has a CPU of its own";
    case NotQuiet::kOwnUnit:
      return "it runs in " + subject + ", which cannot leave its CPUs";
    case NotQuiet::kFloor:
      return "the host would lose CPUs that it always keeps (quiet_floor)";
    case NotQuiet::kRefused:
      return "the helper (kata-affinity-helper) refuses its CPUs: " + subject;
    case NotQuiet::kSilent:
      return "the helper (kata-affinity-helper) does not respond: " + subject;
    case NotQuiet::kProblem:
      return "the helper (kata-affinity-helper) can write nothing: " + subject;
    case NotQuiet::kPending:
      return kHelperPending;
    case NotQuiet::kUnseen:
      return "the helper (kata-affinity-helper) cannot see all that may run there: " + subject;
    case NotQuiet::kUnitLeft:
      return "services of the host may still run on its CPUs: " + subject;
    case NotQuiet::kNotAllowed:
      return "its annotation requests " + subject +
             ", which allow_annotations or allow_grades does not allow";
    case NotQuiet::kNoGrade:
      return "its annotation names an unknown grade";
  }
  return {};
}

std::string remedy_text(const policy::plan::QuietObstacle& obstacle, const std::string& sandbox) {
  switch (obstacle.reason) {
    case NotQuiet::kDisabled:
      return "enable = true";
    case NotQuiet::kReleased:
      return "kata-affinityctl reconcile " + sandbox;
    case NotQuiet::kObserved:
      return "mode = \"follow\"";
    case NotQuiet::kNotDedicated:
    case NotQuiet::kPending:
      return {};
    case NotQuiet::kOwnUnit:
      return "start it outside system.slice, user.slice, init.scope and machine.slice";
    case NotQuiet::kFloor:
      return "a smaller quiet_floor, or fewer exclusive CPUs on this node";
    case NotQuiet::kSilent:
      return "systemctl enable --now kata-affinity-helper.socket";
    case NotQuiet::kRefused:
    case NotQuiet::kProblem:
    case NotQuiet::kUnseen:
      return "journalctl -u kata-affinity-helper";
    case NotQuiet::kUnitLeft:
      return "change AllowedCPUs of that unit (systemctl show -p AllowedCPUs UNIT)";
    case NotQuiet::kNotAllowed:
      return "allow_annotations = [\"grade\"], allow_grades = [\"" + obstacle.subject + "\"]";
    case NotQuiet::kNoGrade:
      return "kata-affinity.io/grade: quiet, realtime, or best-effort";
  }
  return {};
}

}  // namespace ka::messages
