// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/others.hpp"

#include <algorithm>
#include <string_view>

#include "affinity/host/cgroup_names.hpp"
#include "affinity/line/findings.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::line {
namespace {

using policy::CpuSet;
using policy::ledger::PodRecord;

constexpr std::string_view kInvariant = "others";

/// Pods by their uid, and those of which no source reported it.
class Pods {
 public:
  explicit Pods(const policy::ledger::Ledger& ledger) {
    for (const auto& [id, pod] : ledger.pods()) {
      if (pod.pod_uid.empty()) {
        without_uid_.push_back(&pod);
      } else {
        by_uid_.emplace(pod.pod_uid, &pod);
      }
    }
  }

  /// The pod of a cgroup, found by the uid in its name, else by an id of the pod's. May be null.
  const PodRecord* find(const std::string& uid, const std::filesystem::path& directory) const {
    if (const auto found = by_uid_.find(uid); found != by_uid_.end()) return found->second;
    const auto named = std::ranges::find_if(
        without_uid_, [&](const PodRecord* pod) { return is_named(directory.native(), *pod); });
    return named == without_uid_.end() ? nullptr : *named;
  }

 private:
  static bool is_named(const std::string& name, const PodRecord& pod) {
    const auto has = [&](const std::string& id) { return name.find(id) != std::string::npos; };
    return has(pod.id) ||
           std::ranges::any_of(pod.containers, [&](const auto& entry) { return has(entry.first); });
  }

  std::map<std::string, const PodRecord*> by_uid_;
  std::vector<const PodRecord*> without_uid_;
};

/// The sandbox that owns one of these CPUs.
std::string owner_of(const policy::ledger::Ledger& ledger, const CpuSet& cpus) {
  for (const auto& [id, pod] : ledger.pods()) {
    if (pod.vmm && pod.exclusive_cpus().intersects(cpus)) return id;
  }
  return {};
}

/// Threads that are not ours and may run on some of `cpus`, and where.
struct Trespass {
  int threads = 0;
  CpuSet cpus;
  int unread = 0;   ///< threads whose mask could not be read
  std::string why;  ///< not, of the first of them
};

Trespass trespass_of(const host::Tenant& tenant, const CpuSet& cpus, const OthersContext& context) {
  Trespass found;
  if (!tenant.cpus.intersects(cpus)) return found;
  for (const int tid : tenant.threads) {
    if (context.ours.contains(tid)) continue;
    const auto mask = context.calls.get(tid);
    if (!mask && !is_gone(mask) && found.unread++ == 0) found.why = mask.error().message;
    if (!mask || !mask->intersects(cpus)) continue;
    ++found.threads;
    found.cpus |= *mask & cpus;
  }
  return found;
}

/// What only holds a pod's namespaces. kubelet assigns it no CPUs, so nobody will ever narrow it.
bool is_pause(const host::Tenant& tenant, const PodRecord& pod) {
  return !pod.vmm && host::is_of_container(tenant.directory, pod.id);
}

bool is_container(const host::Tenant& tenant, const std::string& uid, const PodRecord* pod) {
  if (host::is_of_monitor(tenant.directory)) return false;
  return pod == nullptr ? !uid.empty() : !is_pause(tenant, *pod);
}

std::string container_text(const host::Tenant& tenant, const std::string& uid,
                           const PodRecord* pod) {
  const std::string name =
      pod == nullptr || pod->pod_name.empty() ? "pod " + uid : "pod " + pod->pod_name;
  return "container " + host::container_name(tenant.directory) + " of " + name;
}

std::string not_ours(const std::string& who, const CpuSet& cpus, bool past_grace) {
  return "not ours: " + who + " may run on " + messages::cpus_text(cpus) +
         ", which another container owns" + (past_grace ? "" : " (kubelet has 15 s to narrow it)");
}

Finding container_finding(const host::Tenant& tenant, const std::string& uid, const PodRecord* pod,
                          const Trespass& trespass, const OthersContext& context) {
  const bool past_grace = trespass.cpus.intersects(context.past_grace);
  const std::string owner = owner_of(context.ledger, trespass.cpus);
  return {past_grace ? Severity::kDegraded : Severity::kNote,
          std::string(kInvariant),
          owner,
          tenant.directory.string(),
          {},
          trespass.cpus,
          not_ours(container_text(tenant, uid, pod), trespass.cpus, past_grace),
          "other-container",
          "restart kubelet, which may have dropped an update that failed; if that does not help, "
          "find out who writes " +
              tenant.directory.string()};
}

Finding host_finding(const Trespass& sum) {
  return {Severity::kNote,
          std::string(kInvariant),
          {},
          "host",
          {},
          sum.cpus,
          "host: " + std::to_string(sum.threads) +
              " threads of services, pause processes and the kernel may run on exclusive " +
              messages::cpus_text(sum.cpus),
          "host-threads",
          "grade = \"quiet\" moves what the kernel does not bind to its CPU"};
}

std::string tenant_text(const host::Tenant& tenant) {
  return tenant.directory.empty() ? "the root cgroup" : "cgroup " + tenant.directory.string();
}

Finding unread_threads(const host::Tenant& tenant, const Trespass& found) {
  return unread({}, tenant_text(tenant),
                "masks of " + messages::counted(found.unread, "thread") + " in " +
                    tenant_text(tenant) + " cannot be read: " + found.why);
}

}  // namespace

Finding released_on_others(const policy::ledger::Ledger& ledger, const PodRecord& pod,
                           const CpuSet& cpus, bool past_grace, std::string remedy) {
  const std::string name = pod.pod_name.empty() ? "" : " (pod " + pod.pod_name + ')';
  return {past_grace ? Severity::kDegraded : Severity::kNote,
          std::string(kInvariant),
          owner_of(ledger, cpus),
          "sandbox " + pod.id,
          {},
          cpus,
          not_ours("released sandbox " + pod.id + name, cpus, past_grace),
          "released",
          std::move(remedy)};
}

Finding unread_cgroups(const base::Error& error) {
  return unread({}, "cgroups", "cannot find the cgroups of this node: " + error.message);
}

Finding others_not_checked() {
  return {Severity::kNote,
          std::string(kInvariant),
          {},
          "cgroups",
          {},
          {},
          "others on exclusive CPUs are not checked: no cgroup hierarchy has the cpuset controller",
          "others-not-checked",
          {}};
}

CpuSet owned_by_sandboxes(const policy::ledger::Ledger& ledger) {
  CpuSet owned;
  for (const auto& [id, pod] : ledger.pods()) {
    if (pod.vmm) owned |= pod.exclusive_cpus();
  }
  return owned;
}

std::vector<Finding> evaluate_others(const host::Tenants& tenants, const OthersContext& context) {
  std::vector<Finding> findings;
  Trespass host;
  const Pods pods(context.ledger);
  const CpuSet owned = owned_by_sandboxes(context.ledger);
  for (const host::Tenant& tenant : tenants.list) {
    Trespass found = trespass_of(tenant, owned, context);
    if (found.unread > 0) findings.push_back(unread_threads(tenant, found));
    if (found.threads == 0) continue;
    const std::string uid = host::pod_uid_of(tenant.directory);
    const PodRecord* pod = pods.find(uid, tenant.directory);
    if (pod != nullptr) found.cpus -= pod->exclusive_cpus();
    if (found.cpus.empty()) continue;
    if (is_container(tenant, uid, pod)) {
      findings.push_back(container_finding(tenant, uid, pod, found, context));
    } else {
      host.threads += found.threads;
      host.cpus |= found.cpus;
    }
  }
  if (host.threads > 0) findings.push_back(host_finding(host));
  for (const std::string& why : tenants.unread) {
    findings.push_back(unread({}, "cgroups", "cannot read a cgroup of another container: " + why));
  }
  return findings;
}

}  // namespace ka::line
