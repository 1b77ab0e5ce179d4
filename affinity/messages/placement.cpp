// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/placement.hpp"

#include "affinity/messages/terms.hpp"

namespace ka::messages {
namespace {

std::string container_name(const policy::ContainerFacts& container) {
  return "container " + container.id + (container.name.empty() ? "" : " (" + container.name + ")");
}

}  // namespace

std::string sentence(const policy::ContainerFacts& container) {
  std::string text = container_name(container);
  if (container.cpus.empty()) {
    text += " has no cpuset";
  } else if (container.exclusive) {
    text += " owns " + cpus_text(container.cpus) + " exclusively";
  } else {
    text += " shares " + cpus_text(container.cpus) + " with others";
  }
  if (!container.mems.empty()) {
    text += ", memory on node " + policy::format_list(container.mems);
  }
  if (container.quota > 0 && container.period > 0) {
    text += ", CFS quota " + std::to_string(container.quota) + " us per " +
            std::to_string(container.period) + " us";
  }
  if (container.exited) text += "; exited, its CPUs stay reserved";
  return text;
}

std::string sentence(const policy::GuestContainerState& state) {
  std::string text = "container " + state.id;
  if (state.problem == policy::GuestProblem::kNotFound) return text + " is not in the guest yet";
  if (state.method == policy::GuestMethod::kNone) return text + " may use every guest CPU";
  if (state.method == policy::GuestMethod::kKataAgent) {
    const bool done = state.problem == policy::GuestProblem::kNone;
    return "kata-agent " + std::string(done ? "was asked" : "refused") + " to run " + text +
           " on guest CPUs " + policy::format_list(state.wanted) +
           (done ? "; it does not confirm" : "");
  }
  text += " runs on guest CPUs " + policy::format_list(state.actual) + ", " +
          counted(state.threads, "thread") + ", by " +
          std::string(policy::guest_method_name(state.method));
  if (state.problem == policy::GuestProblem::kNone) return text;
  return text + ", not as requested: " + std::string(policy::guest_problem_name(state.problem));
}

std::string dedicated_text(const policy::plan::VcpuPlan& vcpu, bool away) {
  return "vCPU " + std::to_string(vcpu.index) + (away ? " should run only on " : " runs only on ") +
         cpus_text(vcpu.cpus) + ", for container " + vcpu.container;
}

std::string sentence(const Floating& floating, const policy::VcpuSet& vcpus) {
  const bool one = vcpus.size() == 1;
  const std::string_view verb =
      floating.away ? " should float on " : (one ? " floats on " : " float on ");
  return (one ? "vCPU " : "vCPUs ") + policy::format_list(vcpus) + std::string(verb) +
         cpus_text(floating.cpus) +
         (floating.container.empty() ? "" : ", for container " + floating.container);
}

std::string sentence(const Group& group, int number) {
  const bool one = number == 1;
  const std::string role(policy::role_name(group.role));
  std::string text = counted(number, role == "iothread" ? role : role + " thread");
  if (group.cpus.empty()) return text + (one ? " is" : " are") + " not placed";
  if (group.away) text += " should use ";
  return text + (group.away ? "" : " may use ") + cpus_text(group.cpus);
}

}  // namespace ka::messages
