// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/notes.hpp"

#include "affinity/messages/terms.hpp"

namespace ka::messages {
namespace {

using policy::plan::Code;
using policy::plan::Note;

std::string vcpus_text(int number) { return counted(number, "vCPU"); }

std::string container(const Note& note) { return "container " + note.subject; }

/// Housekeeping as a whole, or that of the role that is the subject.
std::string housekeeping(const Note& note) {
  const bool of_role = policy::parse_role(note.subject).has_value();
  return of_role ? "housekeeping of " + note.subject : "housekeeping";
}

std::string reason(const Note& note) {
  switch (note.code) {
    case Code::kDedicated:
      return container(note) +
             (note.cpus.size() == 1 ? " has a dedicated vCPU on "
                                    : " has a dedicated vCPU on each of ") +
             cpus_text(note.cpus);
    case Code::kFloating:
      return vcpus_text(note.number) + (note.number == 1 ? " floats on " : " float on ") +
             cpus_text(note.cpus);
    case Code::kSharedContainer:
      return container(note) + " shares the floating vCPUs";
    case Code::kBornNear:
      return "no container is known yet: the VM starts on its pod's CPUs and the shared pool's "
             "CPUs of "
             "the same nodes, so that its memory is allocated there: " +
             cpus_text(note.cpus);
    case Code::kUnconstrained:
      return "no container has a cpuset: the sandbox may use all CPUs not exclusive to others (" +
             cpus_text(note.cpus) + ")";
    case Code::kHousekeepingSandbox:
      return housekeeping(note) + " runs within the sandbox: " + cpus_text(note.cpus);
    case Code::kHousekeepingSharedPool:
      return housekeeping(note) + " runs in the node's shared pool: " + cpus_text(note.cpus);
    case Code::kHousekeepingCpus:
      return housekeeping(note) + " runs on the configured CPUs: " + cpus_text(note.cpus);
    case Code::kHousekeepingIsolate:
      return housekeeping(note) +
             " runs on a core of the sandbox set aside for it: " + cpus_text(note.cpus);
    case Code::kForeignCpusRemoved:
      return cpus_are(note.cpus) + " exclusive to other pods and left out";
    case Code::kKeptFromBefore:
      return container(note) + " keeps its vCPUs";
    case Code::kIsolatedCpus:
      return "the scheduler does not balance load across " + cpus_text(note.cpus) +
             " (isolcpus): a floating thread gets one CPU, or only the balanced ones";
    case Code::kVcpusLeftAlone:
      return "vCPUs are not placed (vcpu_pinning is \"none\")";
    case Code::kVcpusOnMask:
      return "every vCPU floats on the sandbox mask (vcpu_pinning is \"mask\")";
    case Code::kOverrideByHand:
      return note.subject + " is pinned manually to " + cpus_text(note.cpus);
    default:
      return {};
  }
}

std::string warning(const Note& note) {
  switch (note.code) {
    case Code::kNotIsolated:
      return "not isolated: " + cpus_text(note.cpus) + " also " +
             (note.cpus.size() > 1 ? "carry" : "carries") + " housekeeping";
    case Code::kTooFewVcpus:
      return container(note) + " has " + vcpus_text(note.number) + " for " + cpus_text(note.cpus) +
             ": " + (note.number == 1 ? "it floats" : "they float") + " on these as a group";
    case Code::kVcpuShared:
      return container(note) + " has no vCPU of its own and shares vCPU " +
             std::to_string(note.number);
    case Code::kNoFloatingVcpu:
      return "no floating vCPU is left: the guest kernel and shared containers use vCPU " +
             std::to_string(note.number);
    case Code::kCpusUnusable:
      return container(note) + ": " + cpus_are(note.cpus) + " offline or not allowed by the cgroup";
    case Code::kCpusContested:
      return cpus_are(note.cpus) + " also claimed exclusively by another container";
    case Code::kNoUsableCpu:
      return note.subject + ": none of its CPUs is usable, " +
             (note.number == 0 ? "it runs on CPUs that no other pod owns"
                               : "nor is any other: its vCPUs stay where they are");
    case Code::kHousekeepingRefused:
      return housekeeping(note) + " cannot use " + cpus_text(note.cpus) +
             ": placed as with \"sandbox\"";
    case Code::kHousekeepingConfined:
      return "housekeeping cannot use " + cpus_text(note.cpus) + ": " +
             (note.number == 0 ? "the cgroup of " : "the parent cgroup of ") + note.subject +
             " does not allow " + (note.cpus.size() > 1 ? "them" : "it") +
             ", which are placed as with \"sandbox\"" +
             (note.number == 0 ? " (cgroup = \"manage\" allows it)" : "");
    case Code::kIsolateImpossible:
      return "too few cores to set one aside: housekeeping is placed as with \"sandbox\"";
    case Code::kOverrideRefused:
      return note.subject + ": manual pin to " + cpus_text(note.cpus) +
             " ignored, no usable CPU in it";
    default:
      return {};
  }
}

}  // namespace

std::string sentence(const Note& note) {
  std::string text = reason(note);
  return text.empty() ? warning(note) : text;
}

}  // namespace ka::messages
