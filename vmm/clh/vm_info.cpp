// SPDX-License-Identifier: Apache-2.0
#include "vmm/clh/vm_info.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>

namespace ka::clh {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostDepth = 32;

auto wrong(std::string_view what) {
  return base::fail(base::ErrorCode::kInvalid, "vm.info: " + std::string(what));
}

const json::value* member(const json::value* of, std::string_view name) {
  return of != nullptr && of->is_object() ? of->get_object().if_contains(name) : nullptr;
}

/// A whole number from `least` to the largest number of vCPUs.
std::optional<int> number(const json::value* value, int least) {
  if (value == nullptr) return std::nullopt;
  boost::system::error_code failed;
  const auto found = value->to_number<std::int64_t>(failed);
  if (failed || found < least || found >= policy::kMaxIds) return std::nullopt;
  return static_cast<int>(found);
}

/// Without one, or with zeros in it, every vCPU is a core of one package.
bool read_topology(const json::value* topology, VmInfo& info) {
  if (topology == nullptr || topology->is_null()) return true;
  const auto threads = number(member(topology, "threads_per_core"), 0);
  const auto cores = number(member(topology, "cores_per_die"), 0);
  const auto dies = number(member(topology, "dies_per_package"), 0);
  if (!threads || !cores || !dies) return false;
  info.threads_per_core = std::max(*threads, 1);
  info.cores_per_package = *cores * *dies;
  return true;
}

bool read_node(const json::value& node, VmInfo& info) {
  const auto id = number(member(&node, "guest_numa_id"), 0);
  if (!id) return false;
  const json::value* cpus = member(&node, "cpus");
  if (cpus == nullptr || cpus->is_null()) return true;
  if (!cpus->is_array()) return false;
  for (const json::value& cpu : cpus->get_array()) {
    const auto vcpu = number(&cpu, 0);
    if (!vcpu) return false;
    info.nodes[*vcpu] = *id;
  }
  return true;
}

bool read_nodes(const json::value* nodes, VmInfo& info) {
  if (nodes == nullptr || nodes->is_null()) return true;
  if (!nodes->is_array()) return false;
  return std::ranges::all_of(nodes->get_array(),
                             [&](const json::value& node) { return read_node(node, info); });
}

}  // namespace

base::Result<VmInfo> read_vm_info(std::string_view body) {
  boost::system::error_code failed;
  json::parse_options options;
  options.max_depth = kMostDepth;
  const json::value document = json::parse(body, failed, {}, options);
  if (failed) return wrong(failed.message());
  const json::value* config = member(&document, "config");
  const json::value* cpus = member(config, "cpus");
  const auto vcpus = number(member(cpus, "boot_vcpus"), 1);
  if (!vcpus) return wrong("no boot_vcpus");
  VmInfo info{.vcpus = *vcpus};
  if (!read_topology(member(cpus, "topology"), info)) return wrong("unexpected form of topology");
  if (!read_nodes(member(config, "numa"), info)) return wrong("unexpected form of numa");
  return info;
}

vmm::MonitorFacts to_facts(const VmInfo& info) {
  vmm::MonitorFacts facts{.source = "cloud-hypervisor"};
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
