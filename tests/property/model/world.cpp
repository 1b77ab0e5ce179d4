// SPDX-License-Identifier: Apache-2.0
#include "tests/property/model/world.hpp"

#include <algorithm>

namespace ka::model {

using policy::CpuSet;

namespace {

constexpr int kPeriod = 100000;

/// As containerd's.
std::string runtime_id(int number) {
  const std::string digits = std::to_string(number);
  return std::string(64 - digits.size(), '0') + digits;
}

std::string name_of(const std::string& pod) { return "ns/" + pod; }

/// Of its ResourceClaim.
std::string uid_of(const Container& container) { return "claim-of-" + container.id; }

/// The first of them; kubelet packs, and so CPUs are given away again soon after they came back.
CpuSet first_of(const CpuSet& cpus, int count) {
  CpuSet first;
  for (const int cpu : cpus) {
    if (first.size() < count) first.add(cpu);
  }
  return first;
}

}  // namespace

CpuSet Pod::cpus() const {
  CpuSet all;
  for (const Container& container : containers) {
    if (container.runs && !container.exited) all |= container.cpus;
  }
  return all;
}

CpuSet Pod::owned() const {
  CpuSet all;
  for (const Container& container : containers) {
    all |= container.claim;
  }
  return all;
}

Pod* World::admit(std::uint32_t choice) {
  const int wanted = static_cast<int>(choice % 4);
  // CPU 0 is reserved for the system, as kubelet demands.
  const CpuSet free = pool() - CpuSet{0};
  if (pods_.size() >= kMostPods || free.size() <= wanted) return nullptr;
  Pod pod;
  ++made_;
  const bool by_hand = choice / 384 % 3 == 0;
  pod.is_domain = by_hand && has_domains_;
  const std::string number = std::to_string(made_);
  pod.id = by_hand ? (pod.is_domain ? "vm" : "p") + number : runtime_id(made_);
  pod.uid = "uid-" + pod.id;
  pod.is_vm = pod.is_domain || choice / 4 % 4 != 0;
  pod.confined = !pod.is_domain && choice / 16 % 3 == 0;
  pod.vcpus = 1 + static_cast<int>(choice / 48 % 4);
  const CpuSet claim = first_of(free, wanted);
  if (wanted > 0) pod.containers.push_back({pod.id + "-a", "a", claim, claim, true});
  const bool shared_too = wanted == 0 || choice / 192 % 2 == 0;
  if (shared_too) pod.containers.push_back({pod.id + "-b", "b", pool() - pod.owned(), {}, false});
  pods_.push_back(std::move(pod));
  return &pods_.back();
}

void World::forget(const Pod& pod) {
  std::erase_if(pods_, [id = pod.id](const Pod& known) { return known.id == id; });
}

void World::reassign(std::uint32_t choice) {
  std::erase_if(pods_, [](const Pod& pod) { return pod.gone; });
  if (pods_.empty()) return;
  CpuSet free = CpuSet::range(1, kCpus - 1);
  for (const Pod& pod : pods_) {
    if (pod.is_domain) free -= pod.owned();
  }
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (pods_[(i + choice) % pods_.size()].is_domain) continue;
    for (Container& container : pods_[(i + choice) % pods_.size()].containers) {
      container.claim = first_of(free, container.claim.size());
      free -= container.claim;
      if (container.owns && !container.runs) container.cpus = container.claim;
    }
  }
}

Pod* World::find(const std::string& id) {
  const auto found = std::ranges::find(pods_, id, &Pod::id);
  return found == pods_.end() ? nullptr : &*found;
}

Pod* World::by_pid(int pid) {
  const auto found = std::ranges::find(pods_, pid, &Pod::pid);
  return found == pods_.end() ? nullptr : &*found;
}

CpuSet World::claimed() const {
  CpuSet all;
  for (const Pod& pod : pods_) all |= pod.owned();
  return all;
}

CpuSet World::foreign_to(const Pod& pod) const {
  CpuSet foreign;
  for (const Pod& other : pods_) {
    if (!other.is_domain) foreign |= other.owned();
    if (!other.is_domain || other.pid == 0) continue;
    for (const Container& container : other.containers) {
      if (container.runs) foreign |= container.claim;
    }
  }
  return foreign - pod.owned();
}

policy::ledger::Source source_of(Assigner assigner) {
  if (assigner == Assigner::kApi) return policy::ledger::Source::kPodResources;
  return assigner == Assigner::kDriver ? policy::ledger::Source::kDra
                                       : policy::ledger::Source::kKubelet;
}

Assigned World::assigned() const {
  if (assigner_ == Assigner::kApi) return in_response();
  if (assigner_ == Assigner::kDriver) return prepared();
  return in_file();
}

policy::ledger::ResourcesSeen World::in_response() const {
  policy::ledger::ResourcesSeen seen{CpuSet::range(1, kCpus - 1), {}};
  for (const Pod& pod : of_kubelet()) {
    for (const Container& container : pod.containers) {
      seen.assignments.push_back(
          {.pod = name_of(pod.id), .container = container.name, .cpus = container.claim});
    }
  }
  std::ranges::sort(seen.assignments);
  return seen;
}

policy::ledger::PreparedSeen World::prepared() const {
  policy::ledger::PreparedSeen seen;
  for (const Pod& pod : of_kubelet()) {
    for (const Container& container : pod.containers) {
      if (container.owns) seen.claims.push_back({uid_of(container), container.claim});
    }
  }
  std::ranges::sort(seen.claims);
  return seen;
}

policy::ledger::KubeletSeen World::in_file() const {
  policy::ledger::KubeletSeen seen{pool(), std::vector<policy::ledger::Claim>{}};
  for (const Pod& pod : of_kubelet()) {
    for (const Container& container : pod.containers) {
      if (container.owns) seen.claims->push_back({pod.uid, container.name, container.claim});
    }
  }
  std::ranges::sort(*seen.claims);
  return seen;
}

std::vector<Pod> World::of_kubelet() const {
  std::vector<Pod> pods = pods_;
  std::erase_if(pods, [](const Pod& pod) { return pod.is_domain; });
  return pods;
}

policy::ledger::Event World::seen(const Pod& pod) const {
  policy::ledger::PodSeen seen;
  seen.id = pod.id;
  if (pod.is_domain) {
    seen.domain = pod.id;
  } else {
    seen.pod_uid = pod.uid;
    seen.pod_name = name_of(pod.id);
  }
  if (pod.pid != 0) {
    seen.vmm = policy::ProcessId{pod.pid, 100000 + static_cast<std::uint64_t>(pod.pid)};
  }
  return {pod.is_domain ? policy::ledger::Source::kLibvirt : runtime_, std::move(seen)};
}

policy::ledger::Event World::described(const Pod& pod, const Container& container) {
  policy::ContainerFacts facts;
  facts.id = container.id;
  facts.name = container.name;
  facts.cpus = container.cpus;
  return {policy::ledger::Source::kApi,
          policy::ledger::whole_report(pod.id, std::move(facts), container.owns)};
}

policy::ledger::Event World::seen(const Pod& pod, const Container& container) const {
  policy::ContainerFacts facts;
  facts.id = container.id;
  facts.name = container.name;
  facts.cpus = container.cpus;
  facts.period = kPeriod;
  const bool by_driver = assigner_ == Assigner::kDriver;
  facts.quota = container.owns && !by_driver ? kPeriod * container.cpus.size() : -1;
  facts.exited = container.exited;
  auto report = policy::ledger::whole_report(pod.id, std::move(facts));
  if (!reports_exits()) report.spec.exited.reset();
  if (by_driver) report.claims.emplace();
  if (by_driver && container.owns) report.claims->push_back({uid_of(container), container.claim});
  return {runtime_, std::move(report)};
}

std::vector<policy::ledger::Event> World::all() const {
  std::vector<policy::ledger::Event> events;
  for (const Pod& pod : pods_) {
    // A VM without its VMM is none: the runtime's pid leads nowhere.
    if (pod.is_domain || !pod.runs || pod.gone || (pod.is_vm && pod.pid == 0)) continue;
    events.push_back(seen(pod));
    for (const Container& container : pod.containers) {
      if (container.runs) events.push_back(seen(pod, container));
    }
  }
  return events;
}

}  // namespace ka::model
