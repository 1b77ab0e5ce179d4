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
    text += ", with memory of node " + policy::format_list(container.mems);
  }
  if (container.quota > 0 && container.period > 0) {
    text += ", with a quota of " + std::to_string(container.quota) + " us in every " +
            std::to_string(container.period) + " us";
  }
  if (container.exited) text += "; it has exited, its CPUs stay reserved";
  return text;
}

std::string sentence(const policy::GuestContainerState& state) {
  std::string text = "in the guest, container " + state.id;
  if (state.problem == policy::GuestProblem::kNotFound) return text + " is not there yet";
  if (state.method == policy::GuestMethod::kNone) return text + " may use every guest CPU";
  if (state.method == policy::GuestMethod::kKataAgent) {
    const bool done = state.problem == policy::GuestProblem::kNone;
    return text + (done ? " was given guest CPUs " : " was not given guest CPUs ") +
           policy::format_list(state.wanted) +
           " by kata-agent, which does not tell what came of it";
  }
  text += " runs on guest CPUs " + policy::format_list(state.actual) + ", " +
          counted(state.threads, "thread") + " held by " +
          std::string(policy::guest_method_name(state.method));
  if (state.problem == policy::GuestProblem::kNone) return text;
  return text +
         ", and that is not as asked: " + std::string(policy::guest_problem_name(state.problem));
}

std::string dedicated_text(const policy::plan::VcpuPlan& vcpu, bool away) {
  return "vCPU " + std::to_string(vcpu.index) + (away ? " is to run only on " : " runs only on ") +
         cpus_text(vcpu.cpus) + ", for container " + vcpu.container;
}

std::string sentence(const Floating& floating, const policy::VcpuSet& vcpus) {
  const bool one = vcpus.size() == 1;
  const std::string_view verb = floating.away ? (one ? " is to float on " : " are to float on ")
                                              : (one ? " floats on " : " float on ");
  return (one ? "vCPU " : "vCPUs ") + policy::format_list(vcpus) + std::string(verb) +
         cpus_text(floating.cpus) +
         (floating.container.empty() ? "" : ", for container " + floating.container);
}

std::string sentence(const Group& group, int number) {
  const bool one = number == 1;
  std::string text = counted(number, std::string(policy::role_name(group.role)) + " thread");
  if (group.cpus.empty()) return text + (one ? " is" : " are") + " left as found";
  if (group.away) text += one ? " is to use " : " are to use ";
  return text + (group.away ? "" : " may use ") + cpus_text(group.cpus);
}

}  // namespace ka::messages
