#include "policy/ledger/ledger.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace ka::policy {
namespace {

constexpr std::array<std::pair<Source, std::string_view>, 8> kSources{{
    {Source::kApi, "api"},
    {Source::kNri, "nri"},
    {Source::kProxy, "proxy"},
    {Source::kPersist, "persist.json"},
    {Source::kCgroup, "cgroup"},
    {Source::kKubelet, "kubelet"},
    {Source::kLibvirt, "libvirt"},
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

const std::string& key_of(const PodRecord& pod) {
  return pod.pod_uid.empty() ? pod.id : pod.pod_uid;
}

std::string subject(const EventBody& body) {
  struct Visitor {
    std::string operator()(const PodSeen& e) const { return e.id; }
    std::string operator()(const PodGone& e) const { return e.id; }
    std::string operator()(const ContainerSeen& e) const { return e.sandbox; }
    std::string operator()(const ContainerExited& e) const { return e.sandbox; }
    std::string operator()(const ContainerGone& e) const { return e.sandbox; }
    std::string operator()(const KubeletSeen&) const { return {}; }
    std::string operator()(const OverrideSet& e) const { return e.sandbox; }
  };
  return std::visit(Visitor{}, body);
}

/// Of a sandbox whose mask is all that is known: whether its pod's claims make it up.
bool owns_mask(const std::vector<Claim>& claims, const PodRecord& pod, const CpuSet& mask) {
  CpuSet claimed;
  for (const Claim& claim : claims) {
    if (claim.pod_uid == pod.pod_uid) claimed |= claim.cpus;
  }
  return !pod.pod_uid.empty() && !mask.empty() && claimed == mask;
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
  change.any = std::visit([&](const auto& body) { return fold(body, event.source); }, event.body);
  if (!change.any) return change;
  const bool judged = judge_all();
  const bool moved = find_owners();
  change.exclusive_map = judged || moved || std::holds_alternative<KubeletSeen>(event.body);
  return change;
}

void Ledger::restore(PodRecord pod) {
  // What was judged before a restart holds until its source speaks again.
  for (auto& [id, container] : pod.containers) {
    if (!container.told_exclusive) container.told_exclusive = container.facts.exclusive;
  }
  pods_[pod.id] = std::move(pod);
  find_owners();
}

const PodRecord* Ledger::find(std::string_view id) const {
  const auto found = pods_.find(id);
  return found == pods_.end() ? nullptr : &found->second;
}

CpuSet Ledger::exclusive_to_others(std::string_view id) const {
  const PodRecord* pod = find(id);
  if (pod == nullptr) return exclusive_;
  const auto own = owners_.find(key_of(*pod));
  return own == owners_.end() ? exclusive_ : (exclusive_ - own->second) | contested_;
}

CpuSet Ledger::shared_pool(const CpuSet& online) const {
  return kubelet_.shared_pool.value_or(online) - exclusive_;
}

bool Ledger::fold(const PodSeen& event, Source source) {
  const bool known = pods_.contains(event.id);
  PodRecord& pod = record(event.id, source);
  // It knows more of its pods than whoever saw one first.
  if (source == Source::kNri) pod.source = source;
  bool changed = !known;
  changed |= take(pod.pod_uid, event.pod_uid);
  changed |= take(pod.pod_name, event.pod_name);
  changed |= take(pod.handler, event.handler);
  changed |= take(pod.cgroup, event.cgroup);
  changed |= take(pod.qmp_socket, event.qmp_socket);
  changed |= take(pod.agent, event.agent);
  changed |= take(pod.domain, event.domain);
  if (event.vmm_pid && pod.vmm_pid != event.vmm_pid) {
    pod.vmm_pid = event.vmm_pid;
    changed = true;
  }
  return changed;
}

bool Ledger::fold(const PodGone& event, Source) { return pods_.erase(event.id) > 0; }

bool Ledger::fold(const ContainerSeen& event, Source source) {
  PodRecord& pod = record(event.sandbox, source);
  ContainerRecord& known = pod.containers[event.container.id];
  ContainerRecord told{event.container, source, event.exclusive};
  if (told.facts.name.empty()) told.facts.name = known.facts.name;
  told.facts.exclusive = judge(pod, told);
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

bool Ledger::fold(const KubeletSeen& event, Source) {
  if (kubelet_ == event) return false;
  kubelet_ = event;
  return true;
}

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

/// Whether a container owns its CPUs. A person's word goes before everybody's; then kubelet's, for
/// the pods that it knows; then what was judged before a restart; then quota and disjointness: the
/// very set of another pod's container is a pool that they share. (A set that merely overlaps
/// others' proves nothing: kubelet rewrites those up to 10 s late.)
bool Ledger::judge(const PodRecord& pod, const ContainerRecord& container) const {
  const bool by_person = container.source == Source::kApi;
  const bool kubelet_knows = kubelet_.claims && !by_person;
  if (container.told_exclusive && !kubelet_knows) return *container.told_exclusive;
  if (kubelet_knows && container.source == Source::kCgroup) {
    return owns_mask(*kubelet_.claims, pod, container.facts.cpus);
  }
  if (kubelet_knows) return listed(pod, container.facts);
  return exclusive_by_quota(container.facts) &&
         (by_person || !shared_with_another_pod(pod, container.facts.cpus));
}

bool Ledger::listed(const PodRecord& pod, const ContainerFacts& container) const {
  using Key = std::pair<std::string_view, std::string_view>;
  const auto lists = [&](const Key& key) {
    return std::ranges::binary_search(*kubelet_.claims, key, {}, [](const Claim& claim) {
      return Key(claim.pod_uid, claim.container);
    });
  };
  return lists({pod.pod_uid, container.name}) || lists({{}, container.id});
}

bool Ledger::shared_with_another_pod(const PodRecord& pod, const CpuSet& cpus) const {
  return std::ranges::any_of(pods_, [&](const auto& entry) {
    const auto& [id, other] = entry;
    return id != pod.id && std::ranges::any_of(other.containers, [&](const auto& container) {
             return !container.second.facts.exited && container.second.facts.cpus == cpus;
           });
  });
}

/// One event can change what others are: by kubelet's list, a pod's uid, a set that is now shared.
bool Ledger::judge_all() {
  bool changed = false;
  for (auto& [id, pod] : pods_) {
    for (auto& [container_id, container] : pod.containers) {
      const bool exclusive = judge(pod, container);
      changed |= std::exchange(container.facts.exclusive, exclusive) != exclusive;
    }
  }
  return changed;
}

/// Works out who owns which CPU; true when that is something else than before.
bool Ledger::find_owners() {
  std::map<std::string, CpuSet> owners;
  for (const auto& [id, pod] : pods_) {
    const CpuSet cpus = pod.exclusive_cpus();
    if (!cpus.empty()) owners[key_of(pod)] |= cpus;
  }
  if (kubelet_.claims) {
    for (const Claim& claim : *kubelet_.claims) owners[owner_of(claim)] |= claim.cpus;
  }
  if (owners == owners_) return false;
  owners_ = std::move(owners);
  exclusive_ = {};
  contested_ = {};
  for (const auto& [owner, cpus] : owners_) {
    contested_ |= exclusive_ & cpus;
    exclusive_ |= cpus;
  }
  return true;
}

std::string Ledger::owner_of(const Claim& claim) const {
  if (!claim.pod_uid.empty()) return claim.pod_uid;
  const auto pod = std::ranges::find_if(
      pods_, [&](const auto& entry) { return entry.second.containers.contains(claim.container); });
  return pod == pods_.end() ? claim.container : key_of(pod->second);
}

bool exclusive_by_quota(const ContainerFacts& container) {
  if (container.cpus.empty() || container.period <= 0 || container.quota <= 0) return false;
  return container.quota % container.period == 0 &&
         container.quota / container.period == container.cpus.size();
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
