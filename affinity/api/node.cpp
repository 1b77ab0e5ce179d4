// SPDX-License-Identifier: Apache-2.0
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <vector>

#include "affinity/api/encode.hpp"
#include "affinity/api/owner.hpp"
#include "affinity/api/quiet.hpp"
#include "affinity/api/sources.hpp"
#include "affinity/api/tuned.hpp"
#include "affinity/board/board.hpp"
#include "affinity/documents/topology.hpp"
#include "affinity/line/node.hpp"
#include "affinity/messages/isolation.hpp"

namespace ka::api {
namespace {

namespace json = boost::json;

/// The use of one CPU.
struct Tenants {
  json::array owners;  ///< exclusive containers, of any runtime
  json::array vcpus;   ///< dedicated to it
  std::map<std::string_view, int> threads;
};

using ByCpu = std::map<int, Tenants>;

void add_owners(const policy::ledger::Ledger& ledger, ByCpu& cpus) {
  for (const auto& [id, pod] : ledger.pods()) {
    for (const auto& [container_id, record] : pod.containers) {
      if (!record.facts.exclusive) continue;
      for (const int cpu : record.facts.cpus) {
        cpus[cpu].owners.push_back(owner_to_json(pod, record.facts));
      }
    }
  }
}

void add_unreported(const policy::ledger::Ledger& ledger, ByCpu& cpus) {
  for (const policy::ledger::Claim& claim : ledger.unreported_claims()) {
    for (const int cpu : claim.cpus) cpus[cpu].owners.push_back(owner_to_json(claim));
  }
  for (const policy::ledger::PreparedClaim& claim : ledger.unheld_claims()) {
    for (const int cpu : claim.cpus) cpus[cpu].owners.push_back(owner_to_json(claim));
  }
}

/// Whether the owners that are containers of this sandbox have their CPUs to themselves.
void add_isolation(const line::SandboxView& view, ByCpu& cpus) {
  for (const policy::plan::ContainerIsolation& container : view.isolation) {
    for (const int cpu : container.cpus) {
      for (json::value& owner : cpus[cpu].owners) {
        json::object& object = owner.as_object();
        const bool same = object["pod"].as_string() == view.pod.id &&
                          object["container"].as_string() == container.container;
        if (!same) continue;
        object["isolated"] = container.isolated();
        object["obstacles"] = messages::obstacle_names(container);
      }
    }
  }
}

void add_sandbox(const line::SandboxView& view, ByCpu& cpus) {
  add_isolation(view, cpus);
  for (const policy::plan::VcpuPlan& vcpu : view.plan.vcpus) {
    if (vcpu.role != policy::plan::VcpuRole::kDedicated) continue;
    cpus[vcpu.cpus.first()].vcpus.push_back(
        {{"sandbox", view.pod.id}, {"vcpu", vcpu.index}, {"container", vcpu.container}});
  }
  for (const line::ThreadView& thread : view.threads) {
    for (const int cpu : thread.actual) ++cpus[cpu].threads[policy::role_name(thread.facts.role)];
  }
}

json::object cpu_to_json(const policy::Cpu& cpu, Tenants&& tenants, bool shared) {
  json::object threads;
  for (const auto& [role, number] : tenants.threads) threads[role] = number;
  return {{"cpu", cpu.cpu},
          {"shared", shared},
          {"owners", std::move(tenants.owners)},
          {"vcpus", std::move(tenants.vcpus)},
          {"threads", std::move(threads)}};
}

}  // namespace

json::object node_to_json(const line::Node& node, const line::CpuInterruptions& interruptions) {
  ByCpu tenants;
  add_owners(node.ledger(), tenants);
  add_unreported(node.ledger(), tenants);
  for (const std::string& id : node.sandbox_ids()) {
    if (const auto view = node.view(id)) add_sandbox(*view, tenants);
  }
  const policy::Topology& topology = node.topology;
  const policy::CpuSet shared = node.ledger().shared_pool(topology.online());
  json::array cpus;
  for (const policy::Cpu& cpu : topology.cpus()) {
    cpus.push_back(cpu_to_json(cpu, std::move(tenants[cpu.cpu]), shared.contains(cpu.cpu)));
  }
  return {{"enabled", node.options.enable},
          {"observe", node.options.observe},
          {"shared_pool", policy::format_list(shared)},
          {"exclusive", policy::format_list(node.ledger().exclusive())},
          {"sources", sources_to_json(node.board)},
          {"start", start_to_json(node)},
          {"cpus", std::move(cpus)},
          {"pods", quiet_pods_to_json(node)},
          {"tuned", tuned_to_json(node)},
          {"quiet", quiet_to_json(node.board.quiet())},
          {"interruptions", interruptions_to_json(node, interruptions, {})},
          {"topology", documents::to_json(topology)}};
}

}  // namespace ka::api
