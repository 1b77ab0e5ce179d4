// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/plan/plan.hpp"

#include "policy/plan/plan.hpp"

#include <fmt/core.h>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <utility>

#include "affinity/cli/managed/trial.hpp"
#include "affinity/documents/plan.hpp"
#include "affinity/documents/scenario.hpp"
#include "affinity/host/topology.hpp"
#include "affinity/messages/notes.hpp"
#include "base/json/json.hpp"

namespace ka::cli {
namespace {

base::Result<documents::Scenario> read_scenario(const PlanOptions& options) {
  auto topology = host::load_topology(options.topology);
  if (!topology) return unexpected(std::move(topology.error()));
  const auto document = read_json_input(options.scenario);
  if (!document) return unexpected(document.error());
  auto scenario = documents::scenario_from_json(*document, std::move(*topology));
  if (!scenario) return unexpected(about_input(options.scenario, scenario.error()));
  return scenario;
}

base::Result<std::optional<policy::plan::Plan>> read_previous(const std::string& file) {
  if (file.empty()) return std::nullopt;
  const auto document = read_json_input(file);
  if (!document) return unexpected(document.error());
  auto plan = documents::plan_from_json(*document);
  if (!plan) return unexpected(about_input(file, plan.error()));
  return std::move(*plan);
}

std::string line(const std::string& thread, const std::string& role, const std::string& cpus,
                 const std::string& container) {
  std::string text = fmt::format("  {:<20} {:<10} {:<24} {}", thread, role, cpus, container);
  text.erase(text.find_last_not_of(' ') + 1);
  return text + '\n';
}

std::string line(const std::string& thread, const policy::CpuSet& cpus) {
  return line(thread, "", policy::format_list(cpus), "");
}

/// iothreads by their ids; nothing of threads that go with a vCPU.
std::string describe_role(const policy::plan::SandboxPlan& plan, const policy::RoleInfo& info) {
  if (policy::goes_with_vcpu(info.role)) return {};
  if (info.role != policy::Role::kIothread) {
    return line(std::string(info.plan_field), plan.roles[info.role]);
  }
  std::string text;
  for (const auto& [id, cpus] : plan.iothreads) text += line("iothread " + id, cpus);
  return text;
}

std::string describe_threads(const policy::plan::SandboxPlan& plan) {
  std::string text;
  for (const policy::plan::VcpuPlan& vcpu : plan.vcpus) {
    const bool dedicated = vcpu.role == policy::plan::VcpuRole::kDedicated;
    text += line(fmt::format("vCPU {}", vcpu.index), dedicated ? "dedicated" : "floating",
                 policy::format_list(vcpu.cpus), vcpu.container);
  }
  for (const policy::RoleInfo& info : policy::kRoles) text += describe_role(plan, info);
  return text;
}

std::string describe(const policy::plan::SandboxPlan& plan) {
  std::string text = fmt::format("sandbox {}: mask {}, mems {}\n", plan.id,
                                 plan.mask.empty() ? "none" : policy::format_list(plan.mask),
                                 plan.mems.empty() ? "none" : policy::format_list(plan.mems));
  text += line("THREAD", "ROLE", "CPUS", "CONTAINER");
  text += describe_threads(plan);
  for (const auto& note : plan.reasons) text += "  - " + messages::sentence(note) + '\n';
  for (const auto& note : plan.warnings) text += "  ! " + messages::sentence(note) + '\n';
  return text;
}

std::string describe(const policy::plan::Plan& plan) {
  std::string text;
  for (const auto& sandbox : plan.sandboxes) text += (text.empty() ? "" : "\n") + describe(sandbox);
  return text;
}

}  // namespace

Exit run(const PlanOptions& options, Output& output) {
  if (!options.pod.empty()) return plan_pod(options.socket, options.pod, output);
  if (options.managed) return plan_takeover(options.socket, output);
  const auto scenario = read_scenario(options);
  if (!scenario) return output.fail(scenario.error());
  const auto previous = read_previous(options.previous);
  if (!previous) return output.fail(previous.error());
  const policy::plan::Plan plan =
      policy::plan::plan(scenario->snapshot, scenario->settings, *previous ? &**previous : nullptr);
  output.show(documents::to_json(plan), [&plan] { return describe(plan); });
  return Exit::kDone;
}

}  // namespace ka::cli
