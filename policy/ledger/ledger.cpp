#include "policy/ledger/ledger.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace ka::policy {
namespace {

constexpr std::array<std::pair<Source, std::string_view>, 7> kSources{{
    {Source::kApi, "api"},
    {Source::kNri, "nri"},
    {Source::kProxy, "proxy"},
    {Source::kPersist, "persist.json"},
    {Source::kCgroup, "cgroup"},
    {Source::kKubelet, "kubelet"},
    {Source::kState, "state"},
}};

/// Takes over a value that says something; true when that changed anything.
bool take(std::string& known, const std::string& told) {
  if (told.empty() || told == known) return false;
  known = told;
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
    std::string operator()(const SharedPoolSeen&) const { return {}; }
    std::string operator()(const OverrideSet& e) const { return e.sandbox; }
  };
  return std::visit(Visitor{}, body);
}

}  // namespace

std::string_view source_name(Source source) {
  for (const auto& [value, name] : kSources) {
    if (value == source) return name;
  }
  return "unknown";
}

std::optional<Source> parse_source(std::string_view name) {
  for (const auto& [value, text] : kSources) {
    if (text == name) return value;
  }
  return std::nullopt;
}

CpuSet PodRecord::exclusive_cpus() const {
  CpuSet cpus;
  for (const auto& [container_id, container] : containers) {
    if (container.facts.exclusive) cpus |= container.facts.cpus;
  }
  return cpus;
}

Change Ledger::apply(const Event& event) {
  Change change;
  change.sandbox = subject(event.body);
  const auto claims_of = [&]() -> CpuSet {
    const PodRecord* pod = find(change.sandbox);
    return pod == nullptr ? CpuSet{} : pod->exclusive_cpus();
  };
  const CpuSet before = claims_of();
  change.any = std::visit([&](const auto& body) { return fold(body, event.source); }, event.body);
  change.exclusive_map = move_claims(before, claims_of());
  if (std::holds_alternative<SharedPoolSeen>(event.body)) change.exclusive_map = change.any;
  return change;
}

void Ledger::restore(PodRecord pod) {
  const PodRecord* known = find(pod.id);
  const CpuSet before = known == nullptr ? CpuSet{} : known->exclusive_cpus();
  PodRecord& taken = pods_[pod.id];
  taken = std::move(pod);
  move_claims(before, taken.exclusive_cpus());
}

const PodRecord* Ledger::find(std::string_view id) const {
  const auto found = pods_.find(id);
  return found == pods_.end() ? nullptr : &found->second;
}

CpuSet Ledger::exclusive_to_others(std::string_view id) const {
  const PodRecord* pod = find(id);
  if (pod == nullptr) return exclusive_;
  return (exclusive_ - pod->exclusive_cpus()) | (contested_ & exclusive_);
}

CpuSet Ledger::shared_pool(const CpuSet& online) const {
  return shared_pool_ ? *shared_pool_ - exclusive_ : online - exclusive_;
}

bool Ledger::fold(const PodSeen& event, Source source) {
  const bool known = pods_.contains(event.id);
  PodRecord& pod = record(event.id, source);
  bool changed = !known;
  changed |= take(pod.pod_uid, event.pod_uid);
  changed |= take(pod.pod_name, event.pod_name);
  changed |= take(pod.handler, event.handler);
  changed |= take(pod.cgroup, event.cgroup);
  changed |= take(pod.qmp_socket, event.qmp_socket);
  changed |= take(pod.agent, event.agent);
  if (event.vmm_pid && pod.vmm_pid != event.vmm_pid) {
    pod.vmm_pid = event.vmm_pid;
    changed = true;
  }
  return changed;
}

bool Ledger::fold(const PodGone& event, Source) { return pods_.erase(event.id) > 0; }

bool Ledger::fold(const ContainerSeen& event, Source source) {
  ContainerRecord told{event.container, source};
  told.facts.exclusive = event.exclusive.value_or(exclusive_by_quota(event.container));
  ContainerRecord& known = record(event.sandbox, source).containers[event.container.id];
  if (told.facts.name.empty()) told.facts.name = known.facts.name;
  const bool changed = known.facts != told.facts;
  known = std::move(told);
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

bool Ledger::fold(const SharedPoolSeen& event, Source) {
  if (shared_pool_ == event.cpus) return false;
  shared_pool_ = event.cpus;
  return true;
}

bool Ledger::fold(const OverrideSet& event, Source) {
  const auto pod = pods_.find(event.sandbox);
  if (pod == pods_.end()) return false;
  auto& overrides = pod->second.overrides;
  const auto before = overrides;
  std::erase_if(overrides, [&](const Override& o) { return same_thread(o, event.value); });
  if (!event.value.cpus.empty()) overrides.push_back(event.value);
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

bool Ledger::move_claims(const CpuSet& before, const CpuSet& after) {
  if (before == after) return false;
  const int last = std::max(before.last(), after.last());
  if (claims_.size() <= static_cast<std::size_t>(last)) {
    claims_.resize(static_cast<std::size_t>(last) + 1);
  }
  for (const int cpu : before - after) --claims_[static_cast<std::size_t>(cpu)];
  for (const int cpu : after - before) ++claims_[static_cast<std::size_t>(cpu)];
  for (const int cpu : before | after) {
    const int owners = claims_[static_cast<std::size_t>(cpu)];
    owners > 0 ? exclusive_.add(cpu) : exclusive_.remove(cpu);
    owners > 1 ? contested_.add(cpu) : contested_.remove(cpu);
  }
  return true;
}

bool exclusive_by_quota(const ContainerFacts& container) {
  return !container.cpus.empty() && container.period > 0 && container.quota > 0 &&
         container.quota == container.period * container.cpus.size();
}

SandboxFacts to_sandbox_facts(const PodRecord& pod) {
  SandboxFacts facts;
  facts.id = pod.id;
  facts.pod_uid = pod.pod_uid;
  facts.overrides = pod.overrides;
  for (const auto& [id, container] : pod.containers) facts.containers.push_back(container.facts);
  return facts;
}

}  // namespace ka::policy
