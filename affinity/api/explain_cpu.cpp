// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/explain_cpu.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "affinity/api/owner.hpp"
#include "affinity/api/placement.hpp"
#include "affinity/board/board.hpp"
#include "affinity/line/node.hpp"
#include "affinity/messages/cpu.hpp"
#include "affinity/messages/ownership.hpp"
#include "base/iso_time.hpp"

namespace ka::api {
namespace {

namespace json = boost::json;
using policy::CpuSet;
using policy::ledger::Basis;
using policy::ledger::ContainerRecord;
using policy::ledger::PodRecord;
using policy::ledger::Source;
using registry::Report;

/// A container that may use the CPU, or of which some source says so.
struct Tenant {
  const PodRecord& pod;
  const ContainerRecord& container;
  const registry::Reports::BySource& reports;
  policy::ledger::Ownership ownership;
  bool uses = false;  ///< by what counts
  /// What made it an owner gives it the CPU no more: it keeps it until the runtime has updated it.
  bool kept = false;

  bool owns() const { return uses && ownership.exclusive; }
};

/// Whether a source of the whole node gives the CPU to anyone; true for the bases that are no such
/// source.
bool is_given(const line::Node& node, Basis basis, int cpu) {
  const auto has = [cpu](const auto& claim) { return claim.cpus.contains(cpu); };
  if (basis == Basis::kPodResources) {
    return std::ranges::any_of(node.ledger().assignments().seen().assignments, has);
  }
  if (basis != Basis::kKubelet && basis != Basis::kManaged) return true;
  const auto& claims = node.ledger().kubelet().claims;
  return claims && std::ranges::any_of(*claims, has);
}

std::vector<Tenant> tenants_of(const line::Node& node, int cpu) {
  const auto names = [cpu](const auto& report) { return report.second.cpus.contains(cpu); };
  std::vector<Tenant> tenants;
  for (const auto& [id, pod] : node.ledger().pods()) {
    for (const auto& [container, record] : pod.containers) {
      if (record.facts.exited && !record.facts.exclusive) continue;
      const auto& reports = node.registry.reports().of(id, container);
      const bool uses = record.facts.cpus.contains(cpu);
      if (!uses && std::ranges::none_of(reports, names)) continue;
      Tenant tenant{pod, record, reports, node.ledger().ownership_of(pod, record), uses};
      tenant.kept = tenant.owns() && !is_given(node, tenant.ownership.basis, cpu);
      tenants.push_back(tenant);
    }
  }
  return tenants;
}

bool is_managed(const line::Node& node) { return node.board.sources().contains(Source::kManaged); }

/// Of what says who owns which CPU on the node: kubelet's state, or our own allocations.
Basis basis_of_claims(const line::Node& node) {
  return is_managed(node) ? Basis::kManaged : Basis::kKubelet;
}

/// What the CPU's owner follows from: the rows of docs/understand/sources.md that decided about its
/// owners, or where it has none about whoever may use it.
std::set<Basis> bases_of(const line::Node& node, const std::vector<Tenant>& tenants) {
  const bool is_owned = std::ranges::any_of(tenants, &Tenant::owns);
  std::set<Basis> bases;
  for (const Tenant& tenant : tenants) {
    const bool counts = tenant.uses && tenant.owns() == is_owned && !tenant.kept;
    if (counts) bases.insert(tenant.ownership.basis);
  }
  if (is_owned || !bases.empty()) return bases;
  if (!node.ledger().prepared().claims().empty()) return {Basis::kDra};
  if (!node.ledger().lacks_claims()) return {basis_of_claims(node)};
  if (node.ledger().assignments().speak_of_cpus()) return {Basis::kPodResources};
  return {};
}

json::value time_or_null(const std::optional<Report::Time>& time) {
  return time ? json::value(base::iso_time(*time)) : json::value();
}

json::object report_to_json(Source source, const std::string& text,
                            const std::optional<Report::Time>& time, bool decides) {
  return {{"source", policy::ledger::source_name(source)},
          {"time", time_or_null(time)},
          {"text", text},
          {"decides", decides}};
}

/// Of a source that reports the node as a whole. `said`: what it reported last.
json::object node_report(const line::Node& node, Source source, const std::string& said,
                         bool decides) {
  const auto time = node.registry.reports().last_of_node(source);
  if (time) return report_to_json(source, said, time, decides);
  const auto found = node.board.sources().find(source);
  if (found == node.board.sources().end())
    return report_to_json(source, "not followed on this node", {}, false);
  return report_to_json(source, "has not reported: " + found->second.text, {}, false);
}

/// The spec itself decides, by the report that counts; or the API's word does; or the spec has not
/// followed yet what a source of the whole node reports.
bool decides(const Tenant& tenant, Source source, const std::set<Basis>& bases) {
  const Basis basis = tenant.ownership.basis;
  if (tenant.kept) return source == tenant.container.source;
  const bool by_spec = basis == Basis::kOperator || basis == Basis::kQuota ||
                       basis == Basis::kRequest || basis == Basis::kSet;
  return by_spec && bases.contains(basis) && tenant.uses && source == tenant.container.source;
}

void add_tenant_reports(json::array& reports, const Tenant& tenant, const std::set<Basis>& bases) {
  const policy::ContainerFacts& facts = tenant.container.facts;
  for (const auto& [source, report] : tenant.reports) {
    reports.push_back(report_to_json(
        source, messages::report_text(tenant.pod, facts, report.cpus, report.exclusive), report.at,
        decides(tenant, source, bases)));
  }
  if (tenant.reports.contains(tenant.container.source)) return;
  reports.push_back(report_to_json(
      tenant.container.source,
      messages::report_text(tenant.pod, facts, facts.cpus, {}) + ", as before the daemon's start",
      {}, false));
}

json::array reports_of(const line::Node& node, int cpu, const std::vector<Tenant>& tenants) {
  const policy::ledger::Ledger& ledger = node.ledger();
  const std::set<Basis> bases = bases_of(node, tenants);
  json::array reports;
  reports.push_back(node_report(node, is_managed(node) ? Source::kManaged : Source::kKubelet,
                                messages::kubelet_text(ledger.kubelet(), cpu),
                                bases.contains(basis_of_claims(node))));
  reports.push_back(node_report(node, Source::kPodResources,
                                messages::resources_text(ledger.assignments().seen(), cpu),
                                bases.contains(Basis::kPodResources)));
  if (node.board.sources().contains(Source::kDra)) {
    reports.push_back(node_report(node, Source::kDra,
                                  messages::prepared_text(ledger.prepared(), cpu),
                                  bases.contains(Basis::kDra)));
  }
  for (const Tenant& tenant : tenants) add_tenant_reports(reports, tenant, bases);
  return reports;
}

json::array owners_of(const line::Node& node, int cpu, const std::vector<Tenant>& tenants) {
  json::array owners;
  for (const Tenant& tenant : tenants) {
    if (!tenant.owns()) continue;
    json::object owner = owner_to_json(tenant.pod, tenant.container.facts);
    owner["basis"] = policy::ledger::basis_name(tenant.ownership.basis);
    owner["in_doubt"] = tenant.ownership.in_doubt;
    owner["text"] = messages::container_of_pod(tenant.pod, tenant.container.facts);
    owners.push_back(std::move(owner));
  }
  const Basis basis = node.ledger().lacks_claims() ? Basis::kPodResources : basis_of_claims(node);
  for (const policy::ledger::Claim& claim : node.ledger().unreported_claims()) {
    if (!claim.cpus.contains(cpu)) continue;
    json::object owner = owner_to_json(claim);
    owner["basis"] = policy::ledger::basis_name(basis);
    owner["in_doubt"] = false;
    owner["text"] = messages::claim_text(claim);
    owners.push_back(std::move(owner));
  }
  for (const policy::ledger::PreparedClaim& claim : node.ledger().unheld_claims()) {
    if (!claim.cpus.contains(cpu)) continue;
    json::object owner = owner_to_json(claim);
    owner["basis"] = policy::ledger::basis_name(Basis::kDra);
    owner["in_doubt"] = false;
    owner["text"] = "ResourceClaim " + claim.uid;
    owners.push_back(std::move(owner));
  }
  return owners;
}

/// What the plans put there, and threads that are there against their plan.
json::array placed_on(const line::Node& node, int cpu) {
  const AboutCpus about = [cpu](const CpuSet& cpus) { return cpus.contains(cpu); };
  json::array placed;
  for (const std::string& id : node.sandbox_ids()) {
    const auto view = node.view(id);
    if (!view || view->released) continue;
    json::array texts;
    add_vcpu_results(texts, *view, about);
    add_thread_results(texts, *view, about);
    for (json::value& text : texts) {
      placed.push_back(
          {{"sandbox", id}, {"pod_name", view->pod.pod_name}, {"text", std::move(text)}});
    }
  }
  return placed;
}

std::string_view state_of(const line::Node& node, int cpu, bool is_owned) {
  if (!node.topology.online().contains(cpu)) return "offline";
  if (cpus_of(node.registry.contests()).contains(cpu)) return "contested";
  if (is_owned) return "exclusive";
  const bool is_doubted = node.ledger().doubted(node.topology.online()).contains(cpu);
  if (is_doubted || !node.gate().may_widen()) return "unknown";
  return node.ledger().shared_pool(node.topology.online()).contains(cpu) ? "shared" : "unassigned";
}

/// Absent: since before the start.
std::optional<Report::Time> since(const line::Node& node, int cpu) {
  const auto changed = node.registry.ownership_times().last_change(cpu);
  if (!changed) return std::nullopt;
  return node.clock.wall() -
         std::chrono::duration_cast<Report::Time::duration>(node.clock.now() - *changed);
}

}  // namespace

json::object explain_cpu(const line::Node& node, int cpu) {
  const std::vector<Tenant> tenants = tenants_of(node, cpu);
  json::array owners = owners_of(node, cpu, tenants);
  const bool in_doubt = std::ranges::any_of(
      tenants, [](const Tenant& tenant) { return tenant.uses && tenant.ownership.in_doubt; });
  return {{"cpu", cpu},
          {"state", state_of(node, cpu, !owners.empty())},
          {"in_doubt", in_doubt},
          {"since", time_or_null(since(node, cpu))},
          {"owners", std::move(owners)},
          {"reports", reports_of(node, cpu, tenants)},
          {"placed", placed_on(node, cpu)}};
}

}  // namespace ka::api
