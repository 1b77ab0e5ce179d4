// SPDX-License-Identifier: Apache-2.0
#include "vmm/clh/vm_info.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>

#include "base/json/json.hpp"
#include "base/json/lookup.hpp"
#include "base/text.hpp"

namespace ka::clh {
namespace {

namespace json = boost::json;

auto wrong(std::string_view what) {
  return base::fail(base::ErrorCode::kInvalid, "vm.info: " + std::string(what));
}

/// A whole number from `least` to the largest number of vCPUs.
std::optional<int> number(const json::value& value, int least) {
  const auto found = base::number_in(value, -1);
  if (found < least || found >= policy::kMaxIds) return std::nullopt;
  return static_cast<int>(found);
}

/// Without one, or with zeros in it, every vCPU is a core of one package.
bool read_topology(const json::value& topology, VmInfo& info) {
  if (topology.is_null()) return true;
  const auto threads = number(base::member(topology, "threads_per_core"), 0);
  const auto cores = number(base::member(topology, "cores_per_die"), 0);
  const auto dies = number(base::member(topology, "dies_per_package"), 0);
  if (!threads || !cores || !dies) return false;
  info.threads_per_core = std::max(*threads, 1);
  info.cores_per_package = *cores * *dies;
  return true;
}

bool read_node(const json::value& node, VmInfo& info) {
  const auto id = number(base::member(node, "guest_numa_id"), 0);
  if (!id) return false;
  const json::value& cpus = base::member(node, "cpus");
  if (cpus.is_null()) return true;
  if (!cpus.is_array()) return false;
  for (const json::value& cpu : cpus.get_array()) {
    const auto vcpu = number(cpu, 0);
    if (!vcpu) return false;
    info.nodes[*vcpu] = *id;
  }
  return true;
}

bool read_nodes(const json::value& nodes, VmInfo& info) {
  if (nodes.is_null()) return true;
  if (!nodes.is_array()) return false;
  return std::ranges::all_of(nodes.get_array(),
                             [&](const json::value& node) { return read_node(node, info); });
}

/// Older ones have it at /config/kernel/path.
std::string kernel_in(const json::value& document) {
  const json::value& now = base::value_at(document, "/config/payload/kernel");
  const json::value& path = now.is_string() ? now : base::value_at(document, "/config/kernel/path");
  if (!path.is_string()) return {};
  std::string text(path.get_string());
  return text.starts_with('/') && base::is_printable(text, base::kMaxPath) ? text : std::string();
}

bool read_most(const json::value& most, VmInfo& info) {
  if (most.is_null()) return true;
  info.max_vcpus = number(most, info.vcpus);
  return info.max_vcpus.has_value();
}

}  // namespace

base::Result<VmInfo> read_vm_info(std::string_view body) {
  const auto document = base::parse_json(body, "vm.info");
  if (!document) return unexpected(document.error());
  const auto vcpus = number(base::value_at(*document, "/config/cpus/boot_vcpus"), 1);
  if (!vcpus) return wrong("no boot_vcpus");
  VmInfo info{.vcpus = *vcpus};
  if (!read_topology(base::value_at(*document, "/config/cpus/topology"), info)) {
    return wrong("unexpected form of topology");
  }
  if (!read_nodes(base::value_at(*document, "/config/numa"), info)) {
    return wrong("unexpected form of numa");
  }
  if (!read_most(base::value_at(*document, "/config/cpus/max_vcpus"), info)) {
    return wrong("unexpected max_vcpus");
  }
  info.kernel = kernel_in(*document);
  return info;
}

vmm::MonitorFacts to_facts(const VmInfo& info) {
  vmm::MonitorFacts facts{
      .source = "cloud-hypervisor",
      .boot = {.max_vcpus = info.max_vcpus, .kernel = info.kernel, .plugs_in_order = true}};
  for (int i = 0; i < info.vcpus; ++i) {
    const int core = i / info.threads_per_core;
    const auto node = info.nodes.find(i);
    facts.vcpus.push_back(
        {.facts = {.index = i,
                   .socket = info.cores_per_package > 0 ? core / info.cores_per_package : 0,
                   .core = core,
                   .thread = i % info.threads_per_core,
                   .numa = node == info.nodes.end() ? 0 : node->second}});
  }
  return facts;
}

}  // namespace ka::clh
