// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/scenario.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/documents/settings.hpp"
#include "affinity/messages/terms.hpp"
#include "base/json/json.hpp"
#include "policy/ledger/ledger.hpp"

namespace ka::documents {
namespace {

using policy::ContainerFacts;
using policy::CpuSet;
using policy::SandboxFacts;
using policy::Topology;
using policy::VcpuFacts;

/// Reads a set of CPUs that the machine has.
bool read_cpus(base::Fields& fields, std::string_view name, CpuSet& into,
               const Topology& topology) {
  if (!fields.read(name, into)) return false;
  const CpuSet strange = into - topology.all();
  if (!strange.empty()) fields.reject(name, "the machine has no " + messages::cpus_text(strange));
  return true;
}

void read_housekeeping(base::Fields& fields, std::string_view name,
                       policy::plan::Housekeeping& into) {
  std::string text;
  if (!fields.read(name, text)) return;
  auto housekeeping = parse_housekeeping(text);
  if (!housekeeping) return fields.reject(name, housekeeping.error().message);
  into = std::move(*housekeeping);
}

bool read_manage_cgroup(base::Fields& fields) {
  std::string text = "obey";
  fields.read("cgroup", text);
  if (text != "obey" && text != "manage") {
    fields.reject("cgroup", '"' + text + "\" is not one of \"obey\", \"manage\"");
  }
  return text == "manage";
}

policy::plan::Settings read_settings(const boost::json::value& value, const std::string& path,
                                     base::InputError& input_error) {
  policy::plan::Settings settings;
  base::Fields fields(value, path, input_error);
  std::string pinning;
  if (fields.read("vcpu_pinning", pinning)) {
    const auto parsed = parse_vcpu_pinning(pinning);
    if (parsed) settings.vcpu_pinning = *parsed;
    if (!parsed) fields.reject("vcpu_pinning", parsed.error().message);
  }
  read_housekeeping(fields, "housekeeping", settings.housekeeping);
  settings.manage_cgroup = read_manage_cgroup(fields);
  for (const policy::RoleInfo& info : policy::kRoles) {
    if (!info.has_setting || fields.find(info.name) == nullptr) continue;
    read_housekeeping(fields, info.name, settings.housekeeping_by_role[info.role]);
  }
  fields.finish();
  return settings;
}

/// One socket, one thread a core: what Kata gives its VMs; a core's number is then its APIC id.
std::vector<VcpuFacts> plain_vcpus(std::int64_t number) {
  std::vector<VcpuFacts> vcpus;
  for (int i = 0; i < number; ++i) {
    vcpus.push_back({.index = i, .apic_id = i, .socket = 0, .core = i, .thread = 0, .numa = 0});
  }
  return vcpus;
}

VcpuFacts read_vcpu_facts(const boost::json::value& value, const std::string& path,
                          base::InputError& input_error) {
  VcpuFacts vcpu;
  base::Fields fields(value, path, input_error);
  fields.require({"index"});
  fields.read("index", vcpu.index);
  if (vcpu.index >= policy::kMaxIds) fields.reject("index", "is out of bounds");
  int apic_id = 0;
  if (fields.read("apic_id", apic_id)) vcpu.apic_id = apic_id;
  vcpu.core = vcpu.index;
  fields.read("socket", vcpu.socket);
  fields.read("core", vcpu.core);
  fields.read("thread", vcpu.thread);
  fields.read("numa", vcpu.numa);
  fields.finish();
  return vcpu;
}

std::vector<VcpuFacts> read_vcpus(base::Fields& fields, base::InputError& input_error) {
  const auto* value = fields.find("vcpus");
  if (value == nullptr) return {};
  if (const auto* number = value->if_int64()) {
    if (*number >= 0 && *number < policy::kMaxIds) return plain_vcpus(*number);
    fields.reject("vcpus", "must be from 0 to " + std::to_string(policy::kMaxIds - 1));
    return {};
  }
  if (!value->is_array()) fields.reject("vcpus", "must be a number or an array");
  std::vector<VcpuFacts> vcpus;
  if (!value->is_array()) return vcpus;
  fields.each("vcpus", [&](const auto& element, const std::string& path) {
    vcpus.push_back(read_vcpu_facts(element, path, input_error));
  });
  return vcpus;
}

/// How many threads of each kind there are changes no set; only iothreads have names.
std::vector<std::string> read_threads(const boost::json::value& value, const std::string& path,
                                      base::InputError& input_error) {
  std::vector<std::string> iothreads;
  base::Fields fields(value, path, input_error);
  int count = 0;
  for (const policy::RoleInfo& info : policy::kRoles) {
    const bool is_counted = info.role != policy::Role::kIothread;
    if (is_counted && !policy::goes_with_vcpu(info.role)) fields.read(info.plan_field, count);
  }
  fields.read("iothreads", iothreads);
  fields.finish();
  std::ranges::sort(iothreads);
  if (std::ranges::adjacent_find(iothreads) != iothreads.end()) {
    fields.reject("iothreads", "an id is listed twice");
  }
  return iothreads;
}

void check_container(base::Fields& fields, const ContainerFacts& container,
                     const Topology& topology) {
  const CpuSet offline = (container.cpus & topology.all()) - topology.online();
  if (!offline.empty()) fields.reject("cpus", messages::cpus_text(offline) + ": offline");
  const policy::NodeSet strange = container.mems - topology.nodes();
  if (!strange.empty()) {
    fields.reject("mems", "the machine has no node " + policy::format_list(strange));
  }
}

ContainerFacts read_container(const boost::json::value& value, const std::string& path,
                              const Topology& topology, base::InputError& input_error) {
  ContainerFacts container;
  base::Fields fields(value, path, input_error);
  fields.require({"id"});
  fields.read("id", container.id);
  fields.read("name", container.name);
  read_cpus(fields, "cpus", container.cpus, topology);
  fields.read("mems", container.mems);
  fields.read("quota", container.quota);
  fields.read("period", container.period);
  if (!fields.read("exclusive", container.exclusive)) {
    container.exclusive = policy::ledger::exclusive_by_quota(container);
  }
  fields.read("exited", container.exited);
  fields.finish();
  check_container(fields, container, topology);
  return container;
}

/// Sorts by a key that must not occur twice.
template <typename Elements, typename Key>
void sort_unique(Elements& elements, Key key, base::Fields& fields, std::string_view name) {
  std::ranges::sort(elements, {}, key);
  if (std::ranges::adjacent_find(elements, {}, key) != elements.end()) {
    fields.reject(name, "an id or index is listed twice");
  }
}

policy::DeviceFacts read_device(const boost::json::value& value, const std::string& path,
                                const Topology& topology, base::InputError& input_error) {
  policy::DeviceFacts device;
  base::Fields fields(value, path, input_error);
  fields.require({"id"});
  fields.read("id", device.id);
  if (fields.read("numa", device.node) && !topology.nodes().contains(device.node)) {
    fields.reject("numa", "the machine has no node " + std::to_string(device.node));
  }
  fields.finish();
  return device;
}

SandboxFacts read_sandbox(const boost::json::value& value, const std::string& path,
                          const Topology& topology, base::InputError& input_error) {
  SandboxFacts sandbox;
  base::Fields fields(value, path, input_error);
  fields.require({"id"});
  fields.read("id", sandbox.id);
  fields.read("pod_uid", sandbox.pod_uid);
  CpuSet cgroup;
  if (read_cpus(fields, "cgroup", cgroup, topology)) sandbox.cgroup_cpus = cgroup;
  sandbox.vcpus = read_vcpus(fields, input_error);
  if (const auto* threads = fields.find("threads")) {
    sandbox.iothreads = read_threads(*threads, fields.path("threads"), input_error);
  }
  fields.each("containers", [&](const auto& element, const std::string& at) {
    sandbox.containers.push_back(read_container(element, at, topology, input_error));
  });
  fields.each("devices", [&](const auto& element, const std::string& at) {
    sandbox.devices.push_back(read_device(element, at, topology, input_error));
  });
  fields.finish();
  sort_unique(sandbox.devices, &policy::DeviceFacts::id, fields, "devices");
  sort_unique(sandbox.vcpus, &VcpuFacts::index, fields, "vcpus");
  sort_unique(sandbox.containers, &ContainerFacts::id, fields, "containers");
  return sandbox;
}

}  // namespace

base::Result<Scenario> scenario_from_json(const boost::json::value& document, Topology topology) {
  base::InputError input_error;
  Scenario scenario;
  base::Fields fields(document, "", input_error);
  read_cpus(fields, "shared_pool", scenario.snapshot.shared_pool, topology);
  read_cpus(fields, "exclusive_elsewhere", scenario.snapshot.exclusive_elsewhere, topology);
  if (const auto* settings = fields.find("settings")) {
    scenario.settings = read_settings(*settings, "settings", input_error);
  }
  fields.require({"sandboxes"});
  auto& sandboxes = scenario.snapshot.sandboxes;
  fields.each("sandboxes", [&](const auto& element, const std::string& path) {
    sandboxes.push_back(read_sandbox(element, path, topology, input_error));
    sandboxes.back().cgroup_writable = scenario.settings.manage_cgroup;
  });
  fields.finish();
  sort_unique(sandboxes, &SandboxFacts::id, fields, "sandboxes");
  if (!input_error.empty()) return unexpected(input_error.error());
  scenario.snapshot.topology = std::move(topology);
  return scenario;
}

}  // namespace ka::documents
