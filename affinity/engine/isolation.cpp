// SPDX-License-Identifier: Apache-2.0
#include "affinity/engine/isolation.hpp"

#include <algorithm>

#include "affinity/engine/engine.hpp"
#include "affinity/engine/sandbox.hpp"

namespace ka::engine {
namespace {

using policy::plan::Obstacle;
using policy::plan::Remedy;

std::string cpus_text(const policy::CpuSet& cpus) {
  return (cpus.size() == 1 ? "CPU " : "CPUs ") + policy::format_list(cpus);
}

std::string carries(const policy::plan::NotIsolated& obstacle) {
  return cpus_text(obstacle.cpus) + " also " + (obstacle.cpus.size() == 1 ? "carries " : "carry ");
}

std::string unconfirmed_text(const std::string& why) {
  if (why == "numbers-uncertain") return "which guest CPU each vCPU is, is not known";
  if (why == "vcpus-missing") return "vCPUs of its own are not plugged";
  if (why == "refused") return "the agent or the guest's kernel refuses its CPUs";
  if (why == "kata-agent") return "kata-agent does not say on which CPUs the guest runs it";
  if (why == "not-found") return "the guest's agent does not find it in the guest";
  return "the guest's agent has not reported since the last change";
}

/// The command that removes a pin: "kata-affinityctl vcpupin s1 1 --remove".
std::string unpin_text(const std::string& subject, const std::string& sandbox) {
  const std::string first = subject.substr(0, subject.find(", "));
  const std::string role = first.substr(0, first.find(' '));
  const std::string thread = role == first ? "" : first.substr(role.size());
  return "kata-affinityctl " + role + "pin " + sandbox + thread + " --remove";
}

}  // namespace

std::vector<policy::plan::ActualThread> actual_threads(const std::vector<ThreadView>& threads) {
  std::vector<policy::plan::ActualThread> actual;
  actual.reserve(threads.size());
  for (const ThreadView& thread : threads) {
    if (thread.seen) actual.push_back({thread.facts, thread.actual});
  }
  return actual;
}

std::string obstacle_text(const policy::plan::NotIsolated& obstacle) {
  const std::string& subject = obstacle.subject;
  switch (obstacle.obstacle) {
    case Obstacle::kReleased:
      return "its sandbox was released, nothing of it is placed";
    case Obstacle::kObserved:
      return "mode is \"observe\", nothing is written";
    case Obstacle::kNotPinned:
      return "vcpu_pinning gives no vCPU a CPU of its own";
    case Obstacle::kTooFewVcpus:
      return "too few vCPUs: " + cpus_text(obstacle.cpus) +
             (obstacle.cpus.size() == 1 ? " has none of its own" : " have none of their own");
    case Obstacle::kNoFloatingVcpu:
      return carries(obstacle) + "the guest's kernel, no vCPU is left for it";
    case Obstacle::kCpusUnusable:
      return cpus_text(obstacle.cpus) + " cannot be used: offline, or not allowed by its cgroup";
    case Obstacle::kCpusContested:
      return "another pod claims " + cpus_text(obstacle.cpus) + " as well";
    case Obstacle::kHousekeeping:
    case Obstacle::kFloatingVcpu:
      return carries(obstacle) + subject;
    case Obstacle::kSharedContainer:
      return carries(obstacle) + "containers without CPUs of their own: " + subject;
    case Obstacle::kPinnedByHand:
      return "pinned by hand to " + cpus_text(obstacle.cpus) + ": " + subject;
    case Obstacle::kGuestSilent:
      return "no agent in the guest confirms on which vCPUs it runs";
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
    case Remedy::kFollow:
      return "mode = \"follow\"";
    case Remedy::kPinning:
      return "vcpu_pinning = \"dedicated\"";
    case Remedy::kMoreVcpus:
      return "Kata's default_vcpus (or default_maxvcpus): a vCPU for each CPU that its containers "
             "own, and one more";
    case Remedy::kSharedPool:
      return "housekeeping = \"shared-pool\"";
    case Remedy::kManageCgroup:
      return "cgroup = \"manage\"";
    case Remedy::kIsolate:
      return "housekeeping = \"isolate\", and one core more for the pod";
    case Remedy::kCgroupCpus:
      return "bring the CPUs online, or let kubelet give it others";
    case Remedy::kOneOwner:
      return "restart one of the two pods, so that kubelet gives it other CPUs";
    case Remedy::kUnpin:
      return unpin_text(obstacle.subject, sandbox);
    case Remedy::kGuestAgent:
      return "kata-affinity-agent in the guest image (kata-affinityctl guest-image), or guest = "
             "\"none\"";
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

/// By the masks that were read last.
std::vector<policy::plan::ContainerIsolation> Engine::isolation_of(const Sandbox& sandbox) const {
  if (sandbox.plan() == nullptr) return {};
  const policy::ledger::PodRecord& pod = *ledger_.find(sandbox.id());
  const GuestView* guest = find_guest(sandbox.id());
  policy::plan::GuestSide side;
  if (guest != nullptr) {
    side = {guest->connected, guest->current, &guest->wishes,
            guest->report ? &*guest->report : nullptr, &guest->doubts};
  }
  const policy::plan::Placing placing = is_given_back(sandbox) ? policy::plan::Placing::kReleased
                                        : options_.observe     ? policy::plan::Placing::kObserved
                                                               : policy::plan::Placing::kWritten;
  return policy::plan::isolation_of(node_view(sandbox.id()), sandbox.facts(pod), settings_for(pod),
                                    *sandbox.plan(), actual_threads(sandbox.threads()), side,
                                    placing);
}

/// Says once of each container that it became isolated, or why it is not any more. A guest that has
/// yet to answer the last change is waited for.
void Engine::follow_isolation(Sandbox& sandbox) {
  auto containers = isolation_of(sandbox);
  if (containers == sandbox.isolation()) return;
  for (const policy::plan::ContainerIsolation& container : containers) {
    const auto is_behind = [](const policy::plan::NotIsolated& one) {
      return one.obstacle == Obstacle::kGuestUnconfirmed && one.subject == "behind";
    };
    if (std::ranges::any_of(container.obstacles, is_behind)) continue;
    if (!sandbox.announce(container.container, obstacle_names(container))) continue;
    happened(
        container.isolated() ? EventKind::kContainerIsolated : EventKind::kContainerNotIsolated,
        sandbox.id(), isolation_text(container), obstacle_names(container), container.container);
  }
  sandbox.set_isolation(std::move(containers));
}

}  // namespace ka::engine
