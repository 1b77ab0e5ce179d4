// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/isolation.hpp"

#include "affinity/messages/contests.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::messages {
namespace {

using policy::plan::Obstacle;
using policy::plan::Remedy;

std::string carries(const policy::plan::NotIsolated& obstacle) {
  return cpus_text(obstacle.cpus) + " also " + (obstacle.cpus.size() == 1 ? "carries " : "carry ");
}

std::string unconfirmed_text(const std::string& why) {
  if (why == "numbers-uncertain") return "the guest CPU number of each vCPU is not certain";
  if (why == "vcpus-missing") return "some of its vCPUs are not plugged in";
  if (why == "refused") return "the guest agent or kernel refuses its CPUs";
  if (why == "kata-agent") return "kata-agent does not report where the guest runs it";
  if (why == "mask-only") return "which containers it has is not known, only the sandbox's mask";
  if (why == "not-found") return "the guest agent does not find it";
  return "the guest agent has not reported since the last change";
}

/// The command that removes a pin: "kata-affinityctl vcpupin s1 1 --remove".
std::string unpin_text(const std::string& subject, const std::string& sandbox) {
  const std::string first = subject.substr(0, subject.find(", "));
  const std::string role = first.substr(0, first.find(' '));
  const std::string thread = role == first ? "" : first.substr(role.size());
  const std::string command = role == "vCPU" ? "vcpu" : role;
  return "kata-affinityctl " + command + "pin " + sandbox + thread + " --remove";
}

/// A setting, and the command that writes it.
std::string with_profile(const std::string& setting) {
  return setting + " (kata-affinityctl setup --profile isolated --yes)";
}

}  // namespace

std::string obstacle_text(const policy::plan::NotIsolated& obstacle) {
  const std::string& subject = obstacle.subject;
  switch (obstacle.obstacle) {
    case Obstacle::kDisabled:
      return "enable is false, no thread is placed";
    case Obstacle::kReleased:
      return "the sandbox is released, no thread is placed";
    case Obstacle::kObserved:
      return "mode is \"observe\", nothing is written";
    case Obstacle::kNotPinned:
      return "vcpu_pinning dedicates no vCPU";
    case Obstacle::kTooFewVcpus:
      return "too few vCPUs: " + cpus_text(obstacle.cpus) +
             (obstacle.cpus.size() == 1 ? " has none of its own" : " have none of their own");
    case Obstacle::kNoFloatingVcpu:
      return carries(obstacle) + "the guest kernel: no floating vCPU is left";
    case Obstacle::kCpusUnusable:
      return cpus_text(obstacle.cpus) + " cannot be used: offline, or not allowed by its cgroup";
    case Obstacle::kCpusContested:
      return subject.empty() ? "another container also claims " + cpus_text(obstacle.cpus)
                             : cpus_are(obstacle.cpus) + " also assigned to " + subject;
    case Obstacle::kHousekeeping:
    case Obstacle::kFloatingVcpu:
      return carries(obstacle) + subject;
    case Obstacle::kKernelThread:
      return carries(obstacle) + "threads that the kernel binds: " + subject;
    case Obstacle::kSharedContainer:
      return carries(obstacle) + "containers without CPUs of their own: " + subject;
    case Obstacle::kPinnedByHand:
      return "pinned manually to " + cpus_text(obstacle.cpus) + ": " + subject;
    case Obstacle::kGuestSilent:
      return "no guest agent confirms on which vCPUs it runs";
    case Obstacle::kGuestUnconfirmed:
      return unconfirmed_text(subject);
    case Obstacle::kGuestElsewhere:
      return "in the guest it may run on other vCPUs" + (subject.empty() ? "" : ": " + subject);
  }
  return {};
}

std::string remedy_text(const policy::plan::NotIsolated& obstacle, const std::string& sandbox) {
  switch (obstacle.remedy) {
    case Remedy::kReconcile:
      return "kata-affinityctl reconcile " + sandbox;
    case Remedy::kEnable:
      return "enable = true";
    case Remedy::kFollow:
      return with_profile("mode = \"follow\"");
    case Remedy::kPinning:
      return "vcpu_pinning = \"dedicated\"";
    case Remedy::kMoreVcpus:
      return "raise Kata's default_vcpus (or default_maxvcpus): one vCPU per owned CPU, plus one";
    case Remedy::kSharedPool:
      return with_profile("housekeeping = \"shared-pool\"");
    case Remedy::kManageCgroup:
      return with_profile("cgroup = \"manage\"");
    case Remedy::kIsolate:
      return "housekeeping = \"isolate\", and one more core for the pod";
    case Remedy::kCgroupCpus:
      return "bring the CPUs online, or recreate the pod";
    case Remedy::kOneOwner:
      return std::string(kContestRemedy);
    case Remedy::kNewerKernel:
      return "Linux 6.3 or newer lets io_uring's workers be moved; or configure the VMM without "
             "io_uring";
    case Remedy::kUnpin:
      return unpin_text(obstacle.subject, sandbox);
    case Remedy::kGuestAgent:
      return "add kata-affinity-agent to the guest image (kata-affinityctl guest-image), or set "
             "guest = \"none\"";
    case Remedy::kContainers:
      return "enable NRI in the container runtime, or use the shim proxy";
  }
  return {};
}

std::string isolation_text(const policy::plan::ContainerIsolation& container) {
  const std::string name = container.name.empty() ? "" : " (" + container.name + ')';
  std::string text = "container " + container.container + name +
                     (container.isolated() ? " is isolated on " : " is not isolated on ") +
                     cpus_text(container.cpus);
  const char* separator = ": ";
  for (const policy::plan::NotIsolated& obstacle : container.obstacles) {
    text += separator + obstacle_text(obstacle);
    separator = "; ";
  }
  return text;
}

std::string obstacle_names(const policy::plan::ContainerIsolation& container) {
  std::string names;
  for (const policy::plan::NotIsolated& obstacle : container.obstacles) {
    if (!names.empty()) names += ", ";
    names += policy::plan::obstacle_name(obstacle.obstacle);
  }
  return names;
}

}  // namespace ka::messages
