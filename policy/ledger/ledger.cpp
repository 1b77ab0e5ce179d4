// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/ledger.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace ka::policy::ledger {
namespace {

/// Takes over a value that is reported; true when that changed anything.
bool merge(std::string& known, const std::string& seen) {
  if (seen.empty() || seen == known) return false;
  known = seen;
  return true;
}

template <typename T>
bool merge(std::optional<T>& known, const std::optional<T>& seen) {
  if (!seen || seen == known) return false;
  known = seen;
  return true;
}

bool merge(bool& known, std::optional<bool> seen) {
  return seen && std::exchange(known, *seen) != *seen;
}

/// A pod's annotations do not change while it runs: a source that reports none does not know them.
bool merge(Annotations& known, const Annotations& seen) {
  if (seen.empty() || seen == known) return false;
  known = seen;
  return true;
}

bool merge(GradeRequest& known, GradeRequest seen) {
  if (seen == GradeRequest::kNone || seen == known) return false;
  known = seen;
  return true;
}

bool same_thread(const Override& a, const Override& b) {
  return a.role == b.role && a.vcpu_index == b.vcpu_index && a.iothread == b.iothread;
}

std::string subject(const EventBody& body) {
  struct Visitor {
    std::string operator()(const PodSeen& e) const { return e.id; }
    std::string operator()(const PodGone& e) const { return e.id; }
    std::string operator()(const ContainerSeen& e) const { return e.sandbox; }
    std::string operator()(const ContainerExited& e) const { return e.sandbox; }
    std::string operator()(const ContainerGone& e) const { return e.sandbox; }
    std::string operator()(const KubeletSeen&) const { return {}; }
    std::string operator()(const ResourcesSeen&) const { return {}; }
    std::string operator()(const PreparedSeen&) const { return {}; }
    std::string operator()(const OverrideSet& e) const { return e.sandbox; }
  };
  return std::visit(Visitor{}, body);
}

/// All of it, as a source would report it.
PodSeen report_of(const PodRecord& pod) {
  return {.id = pod.id,
          .pod_uid = pod.pod_uid,
          .pod_name = pod.pod_name,
          .handler = pod.handler,
          .vmm = pod.vmm,
          .cgroup = pod.cgroup,
          .qmp_socket = pod.qmp_socket,
          .agent = pod.agent,
          .domain = pod.domain,
          .requested_domain = pod.requested_domain,
          .annotations = pod.annotations,
          .requested_grade = pod.requested_grade,
          .proxy = pod.proxy,
          .original_cpus = pod.original_cpus,
          .domain_pinned = pod.domain_pinned ? std::optional(true) : std::nullopt};
}

bool is_namesake(const ContainerFacts& one, const ContainerFacts& other) {
  return one.id != other.id && !one.name.empty() && one.name == other.name;
}

bool has_begun_namesake(const PodRecord& pod, const ContainerFacts& container) {
  return std::ranges::any_of(pod.containers, [&](const auto& entry) {
    return entry.second.begun && is_namesake(entry.second.facts, container);
  });
}

/// A container that was created and never started ends without an event. True: there was one.
bool end_namesakes(PodRecord& pod, const ContainerFacts& container) {
  bool changed = false;
  for (auto& [id, other] : pod.containers) {
    if (!is_namesake(other.facts, container)) continue;
    other.begun = false;
    changed |= !std::exchange(other.facts.exited, true);
  }
  return changed;
}

/// CPUs were added to a shared container, and nothing else happened to it.
bool only_widens(const ContainerFacts& before, const ContainerFacts& now) {
  if (before.exclusive || before.cpus.empty() || !(before.cpus - now.cpus).empty()) return false;
  ContainerFacts wider = before;
  wider.cpus = now.cpus;
  return wider == now;
}

}  // namespace

const std::string& PodRecord::owner() const { return pod_uid.empty() ? id : pod_uid; }

CpuSet PodRecord::exclusive_cpus() const {
  CpuSet cpus;
  for (const auto& [container_id, container] : containers) {
    if (container.facts.exclusive) cpus |= container.facts.cpus;
  }
  return cpus;
}

void PodRecord::remove_vm() {
  vmm.reset();
  vmm_from_state = domain_pinned = false;
  proxy.reset();
  original_cpus.reset();
  for (std::string* way : {&cgroup, &qmp_socket, &agent, &domain}) way->clear();
}

Change Ledger::apply(const Event& event) {
  Change change;
  change.former_pod = withdraw_vm(event.body);
  change.sandbox = subject(event.body);
  const bool by_kubelet = std::holds_alternative<KubeletSeen>(event.body);
  const bool by_driver = std::holds_alternative<PreparedSeen>(event.body);
  const KubeletSeen before = by_kubelet ? kubelet_ : KubeletSeen{};
  const Prepared prepared = by_driver ? prepared_ : Prepared{};
  const auto* seen = std::get_if<ContainerSeen>(&event.body);
  const std::optional<ContainerFacts> known =
      seen == nullptr ? std::nullopt : facts_of(seen->sandbox, seen->id);
  Touched touched;
  if (std::holds_alternative<ResourcesSeen>(event.body)) touched.names = assignments_.pods();
  const std::uint64_t pool = assignments_.pool_version();
  change.any = fold_and_index(event, change.sandbox, touched);
  if (!change.any) return change;
  if (by_kubelet) touch_claims(before, touched);
  if (by_driver) touch_prepared(prepared, touched);
  if (std::holds_alternative<ResourcesSeen>(event.body)) touched.names.merge(assignments_.pods());
  // What a set has in common with the pool is evidence about any container.
  if (pool != assignments_.pool_version()) touch_all(touched);
  change.owners = by_kubelet;
  finish(std::move(touched), change);
  change.only_widens =
      known && change.taken.empty() && only_widens(*known, *facts_of(seen->sandbox, seen->id));
  return change;
}

void Ledger::restore(PodRecord pod) {
  // A decision from before a restart holds until its source reports again.
  for (auto& [id, container] : pod.containers) {
    container.exclusive_before = container.facts.exclusive;
    container.doubted_before = container.in_doubt;
  }
  pod.vmm_from_state = pod.vmm.has_value();
  const std::string id = pod.id;
  Touched touched;
  remove_from_index(id, touched);
  const auto reported = pods_.extract(id);
  pods_[id] = std::move(pod);
  if (!reported.empty()) add_reported(reported.mapped());
  add_to_index(id, touched);
  Change ignored;
  finish(std::move(touched), ignored);
}

/// Of containers, a source that is connected has reported all that there are.
void Ledger::add_reported(const PodRecord& reported) {
  auto& containers = pods_.at(reported.id).containers;
  std::erase_if(containers,
                [&](const auto& entry) { return connected_.contains(entry.second.source); });
  for (const auto& [id, container] : reported.containers) {
    containers.insert_or_assign(id, container);
  }
  for (const Pin& pin : reported.overrides) {
    fold(OverrideSet{.sandbox = reported.id, .value = pin, .lasts_for = {}}, reported.source);
  }
  fold(report_of(reported), reported.source);
}

void Ledger::set_connected(Source source, bool connected) {
  if (connected) {
    connected_.insert(source);
  } else {
    connected_.erase(source);
  }
}

const PodRecord* Ledger::find(std::string_view id) const {
  const auto found = pods_.find(id);
  return found == pods_.end() ? nullptr : &found->second;
}

const PodRecord* Ledger::find_holder(const ProcessId& vmm, std::string_view id) const {
  const auto found = std::ranges::find_if(
      pods_, [&](const auto& entry) { return entry.second.vmm == vmm && entry.first != id; });
  return found == pods_.end() ? nullptr : &found->second;
}

/// The result: the pod that has lost it; empty: none has.
std::string Ledger::withdraw_vm(const EventBody& body) {
  const auto* seen = std::get_if<PodSeen>(&body);
  if (seen == nullptr || !seen->vmm) return {};
  const PodRecord* holder = find_holder(*seen->vmm, seen->id);
  if (holder == nullptr || !holder->vmm_from_state) return {};
  pods_.find(holder->id)->second.remove_vm();
  return holder->id;
}

std::optional<ContainerFacts> Ledger::facts_of(const std::string& pod,
                                               const std::string& container) const {
  const PodRecord* known = find(pod);
  if (known == nullptr) return std::nullopt;
  const auto found = known->containers.find(container);
  return found == known->containers.end() ? std::nullopt : std::optional(found->second.facts);
}

CpuSet Ledger::exclusive_to_others(std::string_view id) const {
  const PodRecord* pod = find(id);
  if (pod == nullptr) return owners_.all();
  return (owners_.all() - owners_.of(pod->owner())) | owners_.contested();
}

std::vector<Claim> Ledger::unreported_claims() const {
  std::vector<Claim> unreported;
  for (Claim claim : kubelet_.claims.value_or(std::vector<Claim>{})) {
    const auto pods = index_.by_owner.find(owner_of(claim));
    if (pods != index_.by_owner.end()) {
      for (const std::string& id : pods->second) claim.cpus -= pods_.at(id).exclusive_cpus();
    }
    if (!claim.cpus.empty()) unreported.push_back(std::move(claim));
  }
  if (lacks_claims() && assignments_.speak_of_cpus()) add_unreported_assignments(unreported);
  return unreported;
}

void Ledger::add_unreported_assignments(std::vector<Claim>& claims) const {
  for (const Assignment& one : assignments_.seen().assignments) {
    const bool is_ambiguous = index_.by_name.contains(one.pod) && find_named(one.pod) == nullptr;
    if (one.cpus.empty() || is_ambiguous) continue;
    const PodRecord* pod = find_named(one.pod);
    Claim claim{pod == nullptr ? one.pod : pod->owner(), one.container, one.cpus};
    if (pod != nullptr) claim.cpus -= pod->exclusive_cpus();
    if (!claim.cpus.empty()) claims.push_back(std::move(claim));
  }
}

std::vector<PreparedClaim> Ledger::unheld_claims() const {
  std::vector<PreparedClaim> claims;
  for (const PreparedClaim& claim : prepared_.claims()) {
    if (CpuSet cpus = unheld(claim); !cpus.empty()) claims.push_back({claim.uid, std::move(cpus)});
  }
  return claims;
}

CpuSet Ledger::exclusive_to(std::string_view id) const {
  const PodRecord* pod = find(id);
  return pod == nullptr ? CpuSet{} : owners_.of(pod->owner()) - owners_.contested();
}

CpuSet Ledger::doubted_to_others(std::string_view id, const CpuSet& online) const {
  const PodRecord* pod = find(id);
  return doubts_.of_others(pod == nullptr ? std::string() : pod->owner(), online) - owners_.all();
}

CpuSet Ledger::shared_pool(const CpuSet& online) const {
  return kubelet_.shared_pool.value_or(online) - owners_.all();
}

bool Ledger::fold(const PodSeen& event, Source source) {
  const bool known = pods_.contains(event.id);
  PodRecord& pod = record(event.id, source);
  // The source that knows most of its containers may not have reported the pod first.
  const bool is_starting = pod.source == Source::kBundle;
  if (is_starting || traits_of(source).rank > traits_of(pod.source).rank) pod.source = source;
  bool changed = !known;
  changed |= merge(pod.pod_uid, event.pod_uid);
  changed |= merge(pod.pod_name, event.pod_name);
  changed |= merge(pod.handler, event.handler);
  changed |= merge(pod.cgroup, event.cgroup);
  changed |= merge(pod.qmp_socket, event.qmp_socket);
  changed |= merge(pod.agent, event.agent);
  changed |= merge(pod.domain, event.domain);
  changed |= merge(pod.requested_domain, event.requested_domain);
  changed |= merge(pod.annotations, event.annotations);
  changed |= merge(pod.requested_grade, event.requested_grade);
  changed |= merge(pod.vmm, event.vmm);
  if (event.vmm) pod.vmm_from_state = false;
  changed |= merge(pod.proxy, event.proxy);
  changed |= merge(pod.original_cpus, event.original_cpus);
  changed |= merge(pod.domain_pinned, event.domain_pinned);
  return changed;
}

/// PodResources reported it for the pod that ended: a later one of the same name is another.
bool Ledger::fold(const PodGone& event, Source) {
  const auto found = pods_.find(event.id);
  if (found == pods_.end()) return false;
  const std::string name = found->second.pod_name;
  pods_.erase(found);
  if (!name.empty() && !index_.by_name.contains(name)) assignments_.forget(name);
  return true;
}

bool Ledger::fold_container(const ContainerSeen& event, Source source) {
  PodRecord& pod = record(event.sandbox, source);
  const auto [entry, added] = pod.containers.try_emplace(event.id);
  ContainerRecord& known = entry->second;
  if (!added && outranks(known, source)) return false;
  ContainerRecord merged{
      known.facts,   source, event.exclusive, std::nullopt, event.claims.value_or(known.claims),
      known.in_doubt};
  merged.facts.id = event.id;
  if (added) merge(event.before, merged.facts);
  merge(event.spec, merged.facts);
  merged.begun = event.begins || known.begun;
  const bool ends_another = event.begins && end_namesakes(pod, merged.facts);
  if (!merged.begun && has_begun_namesake(pod, merged.facts)) merged.facts.exited = true;
  merged.facts.exclusive = ownership_of(pod, merged).exclusive;
  const bool changed = ends_another || known.facts != merged.facts || known.claims != merged.claims;
  known = std::move(merged);
  return changed;
}

bool Ledger::fold(const ContainerExited& event, Source) {
  const auto pod = pods_.find(event.sandbox);
  if (pod == pods_.end()) return false;
  const auto container = pod->second.containers.find(event.container);
  if (container == pod->second.containers.end()) return false;
  return !std::exchange(container->second.facts.exited, true);
}

bool Ledger::fold(const ContainerGone& event, Source) {
  const auto pod = pods_.find(event.sandbox);
  return pod != pods_.end() && pod->second.containers.erase(event.container) > 0;
}

bool Ledger::fold(const KubeletSeen& event, Source source) {
  assigner_ = source;
  if (kubelet_ == event) return false;
  kubelet_ = event;
  return true;
}

bool Ledger::fold(const ResourcesSeen& event, Source) { return assignments_.replace(event); }

bool Ledger::fold(const PreparedSeen& event, Source) { return prepared_.replace(event); }

bool Ledger::fold(const OverrideSet& event, Source) {
  const auto pod = pods_.find(event.sandbox);
  if (pod == pods_.end()) return false;
  auto& overrides = pod->second.overrides;
  const auto before = overrides;
  std::erase_if(overrides, [&](const Override& o) { return same_thread(o, event.value); });
  if (!event.value.cpus.empty()) overrides.push_back(event.value);
  std::ranges::sort(overrides, {},
                    [](const Override& o) { return std::tie(o.role, o.vcpu_index, o.iothread); });
  return overrides != before;
}

PodRecord& Ledger::record(const std::string& id, Source source) {
  const auto [found, added] = pods_.try_emplace(id);
  if (added) {
    found->second.id = id;
    found->second.source = source;
  }
  return found->second;
}

/// Whether a report of `source` leaves what is known of a container as it is. An operator always
/// overrides, and what is known from before a restart gives way to any report.
bool Ledger::outranks(const ContainerRecord& known, Source source) const {
  if (source == Source::kApi || known.exclusive_before) return false;
  const SourceTraits& traits = traits_of(known.source);
  const bool counts = traits.outlives_connection || connected_.contains(known.source);
  return counts && traits.rank > traits_of(source).rank;
}

SandboxFacts to_sandbox_facts(const PodRecord& pod) {
  SandboxFacts facts;
  facts.id = pod.id;
  facts.pod_uid = pod.pod_uid;
  facts.overrides.assign(pod.overrides.begin(), pod.overrides.end());
  for (const auto& [id, container] : pod.containers) facts.containers.push_back(container.facts);
  return facts;
}

}  // namespace ka::policy::ledger
