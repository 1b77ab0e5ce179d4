// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/plan.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <string>

#include "affinity/messages/notes.hpp"
#include "base/json/json.hpp"

namespace ka::documents {
namespace {

using policy::plan::ContainerPlan;
using policy::plan::SandboxPlan;
using policy::plan::VcpuPlan;
using policy::plan::VcpuRole;

boost::json::object vcpu_to_json(const VcpuPlan& vcpu) {
  boost::json::object object{
      {"index", vcpu.index},
      {"cpus", policy::format_list(vcpu.cpus)},
      {"role", vcpu.role == VcpuRole::kDedicated ? "dedicated" : "floating"}};
  if (!vcpu.container.empty()) object["container"] = vcpu.container;
  if (!vcpu.placed) object["placed"] = false;
  return object;
}

boost::json::object container_to_json(const ContainerPlan& container) {
  boost::json::object object{{"id", container.id},
                             {"vcpus", policy::format_list(container.vcpus)},
                             {"dedicated", container.dedicated}};
  if (!container.name.empty()) object["name"] = container.name;
  return object;
}

boost::json::array sentences(const std::vector<policy::plan::Note>& notes) {
  boost::json::array array;
  for (const policy::plan::Note& note : notes)
    array.push_back(boost::json::value(messages::sentence(note)));
  return array;
}

VcpuPlan read_vcpu_plan(const boost::json::value& value, const std::string& path,
                        base::InputError& input_error) {
  VcpuPlan vcpu;
  std::string role = "floating";
  base::Fields fields(value, path, input_error);
  fields.require({"index"});
  fields.read("index", vcpu.index);
  fields.read("cpus", vcpu.cpus);
  fields.read("role", role);
  fields.read("container", vcpu.container);
  fields.read("placed", vcpu.placed);
  fields.finish();
  if (role != "dedicated" && role != "floating") {
    fields.reject("role", '"' + role + "\" is not one of \"dedicated\", \"floating\"");
  }
  if (role == "dedicated") vcpu.role = VcpuRole::kDedicated;
  return vcpu;
}

ContainerPlan read_container(const boost::json::value& value, const std::string& path,
                             base::InputError& input_error) {
  ContainerPlan container;
  base::Fields fields(value, path, input_error);
  fields.require({"id"});
  fields.read("id", container.id);
  fields.read("name", container.name);
  fields.read("vcpus", container.vcpus);
  fields.read("dedicated", container.dedicated);
  fields.finish();
  return container;
}

using SetsByName = std::map<std::string, policy::CpuSet>;

boost::json::object to_json(const SetsByName& sets) {
  boost::json::object object;
  for (const auto& [name, cpus] : sets) object[name] = policy::format_list(cpus);
  return object;
}

void read_sets(base::Fields& fields, std::string_view name, SetsByName& into,
               base::InputError& input_error) {
  const auto* value = fields.find(name);
  if (value == nullptr) return;
  base::Fields sets(*value, fields.path(name), input_error);
  if (!value->is_object()) return;
  for (const auto& member : value->get_object()) {
    sets.read(member.key(), into[std::string(member.key())]);
  }
}

SandboxPlan read_sandbox(const boost::json::value& value, const std::string& path,
                         base::InputError& input_error) {
  SandboxPlan plan;
  base::Fields fields(value, path, input_error);
  fields.require({"id"});
  fields.read("id", plan.id);
  fields.read("pod_uid", plan.pod_uid);
  fields.read("mask", plan.mask);
  fields.read("mems", plan.mems);
  fields.read("housekeeping", plan.housekeeping);
  for (const policy::RoleInfo& info : policy::kRoles) {
    if (!policy::goes_with_vcpu(info.role)) fields.read(info.plan_field, plan.roles[info.role]);
  }
  fields.read("cgroup_wanted", plan.cgroup);
  read_sets(fields, "iothreads", plan.iothreads, input_error);
  read_sets(fields, "interrupts", plan.interrupts, input_error);
  fields.each("vcpus", [&](const auto& element, const std::string& at) {
    plan.vcpus.push_back(read_vcpu_plan(element, at, input_error));
  });
  fields.each("containers", [&](const auto& element, const std::string& at) {
    plan.containers.push_back(read_container(element, at, input_error));
  });
  std::vector<std::string> ignored;
  fields.read("reasons", ignored);
  fields.read("warnings", ignored);
  fields.finish();
  std::ranges::sort(plan.vcpus, {}, &VcpuPlan::index);
  std::ranges::sort(plan.containers, {}, &ContainerPlan::id);
  return plan;
}

}  // namespace

boost::json::object placements_to_json(const SandboxPlan& plan) {
  boost::json::object object{{"id", plan.id}};
  if (!plan.pod_uid.empty()) object["pod_uid"] = plan.pod_uid;
  object["mask"] = policy::format_list(plan.mask);
  object["mems"] = policy::format_list(plan.mems);
  boost::json::array vcpus;
  for (const VcpuPlan& vcpu : plan.vcpus) vcpus.push_back(vcpu_to_json(vcpu));
  object["vcpus"] = std::move(vcpus);
  object["housekeeping"] = policy::format_list(plan.housekeeping);
  for (const policy::RoleInfo& info : policy::kRoles) {
    if (policy::goes_with_vcpu(info.role)) continue;
    object[info.plan_field] = policy::format_list(plan.roles[info.role]);
  }
  if (!plan.cgroup.empty()) object["cgroup_wanted"] = policy::format_list(plan.cgroup);
  object["iothreads"] = to_json(plan.iothreads);
  if (!plan.interrupts.empty()) object["interrupts"] = to_json(plan.interrupts);
  boost::json::array containers;
  for (const auto& container : plan.containers) containers.push_back(container_to_json(container));
  object["containers"] = std::move(containers);
  return object;
}

boost::json::object to_json(const SandboxPlan& plan) {
  boost::json::object object = placements_to_json(plan);
  object["reasons"] = sentences(plan.reasons);
  object["warnings"] = sentences(plan.warnings);
  return object;
}

boost::json::object to_json(const policy::plan::Plan& plan) {
  boost::json::array sandboxes;
  for (const SandboxPlan& sandbox : plan.sandboxes) sandboxes.push_back(to_json(sandbox));
  return {{"sandboxes", std::move(sandboxes)}};
}

base::Result<SandboxPlan> sandbox_plan_from_json(const boost::json::value& document) {
  base::InputError input_error;
  SandboxPlan plan = read_sandbox(document, "", input_error);
  if (!input_error.empty()) return unexpected(input_error.error());
  return plan;
}

base::Result<policy::plan::Plan> plan_from_json(const boost::json::value& document) {
  base::InputError input_error;
  policy::plan::Plan plan;
  base::Fields fields(document, "", input_error);
  fields.require({"sandboxes"});
  fields.each("sandboxes", [&](const auto& element, const std::string& path) {
    plan.sandboxes.push_back(read_sandbox(element, path, input_error));
  });
  fields.finish();
  if (!input_error.empty()) return unexpected(input_error.error());
  std::ranges::sort(plan.sandboxes, {}, &SandboxPlan::id);
  return plan;
}

}  // namespace ka::documents
