// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/nri/translate.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <utility>

#include "base/files.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "policy/facts/cpu_tuning.hpp"
#include "policy/facts/limits.hpp"
#include "shim-ext/proto/nri.pb.h"
#include "shim-ext/watch/claim_entry.hpp"

namespace ka::nri {
namespace {

// ContainerState in api.proto.
constexpr int kContainerPaused = 2;
constexpr int kContainerRunning = 3;
constexpr int kContainerStopped = 4;
constexpr std::size_t kMostPageSizes = 8, kMostDevices = 64;

/// Absent where the list is empty or malformed.
template <typename Tag>
std::optional<policy::IdSet<Tag>> read_list(const std::string& list, const std::string& container,
                                            const log::Log& log) {
  if (list.empty()) return std::nullopt;
  auto parsed = policy::parse_list<Tag>(list);
  if (parsed && !list.ends_with('\n')) return std::move(*parsed);
  log.warning("the runtime sent a malformed list",
              {{"container", base::printable(container)},
               {"list", base::printable(list)},
               {"reason", parsed ? "it ends in a newline" : parsed.error().reason}});
  return std::nullopt;
}

/// What the environment names of claims on CPUs, the last of each. Absent: it was not sent.
std::optional<std::vector<policy::ledger::PreparedClaim>> claims_of(
    const proto::nri::Container& container) {
  if (container.env().empty()) return std::nullopt;
  std::map<std::string, policy::CpuSet> claims;
  for (const std::string& entry : container.env()) {
    if (claims.size() >= watch::kMaxClaimEntries) break;
    if (auto claim = watch::parse_claim_entry(entry)) claims[claim->uid] = std::move(claim->cpus);
  }
  std::vector<policy::ledger::PreparedClaim> list;
  for (auto& [uid, cpus] : claims) list.push_back({uid, std::move(cpus)});
  return list;
}

/// The domain that a pod names by annotation; nothing where that is no valid name.
std::string requested_domain(const proto::nri::PodSandbox& pod) {
  constexpr std::size_t kLongest = 255;
  const auto found = pod.annotations().find("kata-affinity.io/libvirt_domain");
  if (found == pod.annotations().end()) return {};
  return base::is_printable(found->second, kLongest) ? found->second : std::string();
}

/// What a pod asks for: resource classes, and tuning of its CPUs.
policy::Annotations annotations_of(const proto::nri::PodSandbox& pod) {
  policy::Annotations annotations;
  for (const auto& [key, name] : pod.annotations()) {
    if (annotations.size() >= policy::kMaxAnnotations) break;
    const bool is_text =
        base::is_printable(key, base::kMaxName) && base::is_printable(name, base::kMaxName);
    const bool is_known = policy::is_class_request(key) || policy::is_tuning_request(key);
    if (is_text && is_known) annotations[key] = name;
  }
  return annotations;
}

policy::GradeRequest requested_grade(const proto::nri::PodSandbox& pod) {
  const auto found = pod.annotations().find(std::string(policy::kGradeAnnotation));
  return found == pod.annotations().end() ? policy::GradeRequest::kNone
                                          : policy::parse_grade_request(found->second);
}

/// A pod's own process is the VMM or the runtime's pause program; what a container runs is its
/// owner's choice, and so is all that a runtime without VMs starts.
Origin origin_of(const proto::nri::PodSandbox& pod) {
  const std::string& handler = pod.runtime_handler();
  const bool has_vms = handler != "runc" && handler != "crun";
  return pod.pid() != 0 && has_vms ? Origin::kPod : Origin::kContainer;
}

std::string name_of(const proto::nri::PodSandbox& pod) {
  return base::printable(pod.namespace_().empty() ? pod.name()
                                                  : pod.namespace_() + '/' + pod.name());
}

/// The class that a pod asks for.
std::optional<std::string> requested_class(const proto::nri::PodSandbox& pod,
                                           const std::string& container) {
  for (const std::string& key : policy::managed::class_annotations(container)) {
    const auto found = pod.annotations().find(key);
    if (found != pod.annotations().end()) return base::printable(found->second);
  }
  return std::nullopt;
}

/// "2MB", "1GB" in bytes, as runtimes write page sizes (the OCI runtime spec's hugepageLimits); 0
/// for anything else.
std::uint64_t page_bytes(std::string_view size) {
  const auto digits = size.find_first_not_of("0123456789");
  const auto number = base::parse_number(size.substr(0, digits));
  if (digits == std::string_view::npos || !number || *number <= 0 || *number > 1024) return 0;
  const std::string_view unit = size.substr(digits);
  const int shift = unit == "KB" ? 10 : unit == "MB" ? 20 : unit == "GB" ? 30 : -1;
  return shift < 0 ? 0 : static_cast<std::uint64_t>(*number) << shift;
}

policy::managed::Needs needs_of(const proto::nri::LinuxResources& resources) {
  policy::managed::Needs needs;
  const std::int64_t limit = resources.memory().limit().value();
  if (limit > 0) needs.memory[policy::managed::kOrdinaryPage] = static_cast<std::uint64_t>(limit);
  for (const auto& huge : resources.hugepage_limits()) {
    const std::uint64_t page = page_bytes(huge.page_size());
    if (page != 0 && huge.limit() != 0 && needs.memory.size() < kMostPageSizes) {
      needs.memory[page] = huge.limit();
    }
  }
  return needs;
}

policy::managed::PodNeeds needs_of(const proto::nri::PodSandbox& pod) {
  const auto& resources = pod.linux().pod_resources();
  const std::int64_t quota = resources.cpu().quota().value();
  const auto period = static_cast<std::int64_t>(resources.cpu().period().value());
  const bool has_cpus = quota > 0 && period > 0 && quota <= INT64_MAX - period;
  const std::int64_t cpus = has_cpus ? (quota + period - 1) / period : 0;
  return {static_cast<int>(std::min<std::int64_t>(cpus, policy::kMaxIds)), needs_of(resources)};
}

std::vector<DeviceNumber> devices_of(const proto::nri::Container& container) {
  std::vector<DeviceNumber> devices;
  for (const auto& device : container.linux().devices()) {
    const bool is_one = device.major() >= 0 && device.minor() >= 0 && device.major() <= INT_MAX &&
                        device.minor() <= INT_MAX;
    if (!is_one || devices.size() >= kMostDevices) continue;
    devices.push_back(
        {device.type() == "b", static_cast<int>(device.major()), static_cast<int>(device.minor())});
  }
  return devices;
}

std::string cgroup_of(const proto::nri::PodSandbox& pod) {
  return base::printable(pod.linux().cgroup_parent(), base::kMaxPath);
}

}  // namespace

Translator::Translator(Probe probe, const log::Log& log, const base::Clock& clock)
    : probe_(std::move(probe)), log_(log), clock_(clock) {}

/// An error that has passed at once is none.
base::Result<Process> Translator::probe_twice(int pid, Origin origin) const {
  auto process = probe_(pid, origin);
  return process || is_gone(process) ? process : probe_(pid, origin);
}

/// Looks once at a process, or `afresh`; while that cannot be done, it is tried again. True when
/// the answer is new.
bool Translator::probe(const std::string& id, Pod& known, int pid, bool afresh) {
  const bool is_known = known.pid == pid && !afresh && !unseen_.contains(id);
  if (pid <= 0 || known.process.is_vmm || is_known) return false;
  const auto process = probe_twice(pid, known.origin);
  if (known.pid != pid) unseen_.erase(id);
  if (!process && !is_gone(process)) {
    known.pid = pid;
    record_unseen(id, known, process.error().message);
  }
  if (!process) return false;
  unseen_.erase(id);
  const bool is_new = std::exchange(known.pid, pid) != pid || process->is_vmm;
  known.process = *process;
  return is_new;
}

void Translator::record_unseen(const std::string& id, Pod& known, const std::string& why) {
  const auto [entry, added] = unseen_.insert_or_assign(id, why);
  if (!added) return;
  known.named = clock_.since_boot();
  log_.warning("cannot see whether the pod has a VM, trying again with each drift check",
               {{"sandbox", id}, {"reason", why}});
}

std::optional<policy::ledger::Event> Translator::pod(const proto::nri::PodSandbox& pod, int pid,
                                                     bool afresh) {
  if (!base::is_id(pod.id()) ||
      (pods_.size() >= policy::kMaxSandboxes && !pods_.contains(pod.id()))) {
    log_.warning("pod ignored",
                 {{"sandbox", base::printable(pod.id())},
                  {"reason", base::is_id(pod.id()) ? "too many pods" : "invalid id"}});
    return std::nullopt;
  }
  const auto [entry, added] = pods_.try_emplace(pod.id());
  Pod& known = entry->second;
  known.is_pods_own = pod.pid() != 0;
  known.origin = origin_of(pod);
  known.name = name_of(pod);
  known.cgroup = cgroup_of(pod);
  const bool probed = probe(pod.id(), known, pid, afresh);
  std::string uid = base::printable(pod.uid());
  if (!added && !probed && known.uid == uid) return std::nullopt;
  known.uid = std::move(uid);
  policy::ledger::PodSeen seen;
  seen.id = pod.id();
  seen.pod_uid = known.uid;
  seen.pod_name = name_of(pod);
  seen.handler = base::printable(pod.runtime_handler());
  seen.requested_domain = requested_domain(pod);
  seen.annotations = annotations_of(pod);
  seen.requested_grade = requested_grade(pod);
  if (known.process.is_vmm) seen.vmm = known.process.id;
  return policy::ledger::Event{policy::ledger::Source::kNri, std::move(seen)};
}

bool Translator::is_named(const proto::nri::Container& container) const {
  if (base::is_id(container.id()) && base::is_id(container.pod_sandbox_id())) return true;
  log_.warning("container ignored", {{"container", base::printable(container.id())},
                                     {"sandbox", base::printable(container.pod_sandbox_id())},
                                     {"reason", "invalid id"}});
  return false;
}

policy::ledger::Event Translator::container(const proto::nri::Container& container) const {
  return {policy::ledger::Source::kNri, seen(container, whole(container))};
}

policy::ledger::Event Translator::updated(const proto::nri::Container& container,
                                          const proto::nri::LinuxResources& resources) const {
  auto update = seen(container, changes(resources, container.id()));
  update.before = whole(container);
  return {policy::ledger::Source::kNri, std::move(update)};
}

policy::ledger::ContainerSeen Translator::seen(const proto::nri::Container& container,
                                               policy::ledger::ContainerSpec spec) const {
  spec.name = base::printable(container.name());
  spec.exited = container.state() == kContainerStopped;
  return {
      .sandbox = container.pod_sandbox_id(),
      .id = container.id(),
      .spec = std::move(spec),
      .claims = claims_of(container),
      .begins = container.state() == kContainerPaused || container.state() == kContainerRunning};
}

policy::ledger::ContainerSpec Translator::whole(const proto::nri::Container& container) const {
  auto spec = changes(container.linux().resources(), container.id());
  spec.quota = spec.quota.value_or(0);
  spec.period = spec.period.value_or(0);
  return spec;
}

policy::ledger::ContainerSpec Translator::changes(const proto::nri::LinuxResources& resources,
                                                  const std::string& container) const {
  const auto& cpu = resources.cpu();
  policy::ledger::ContainerSpec spec;
  spec.cpus = read_list<policy::CpuTag>(cpu.cpus(), container, log_);
  spec.mems = read_list<policy::NodeTag>(cpu.mems(), container, log_);
  if (cpu.quota().value() != 0) spec.quota = cpu.quota().value();
  if (cpu.period().value() != 0) spec.period = static_cast<std::int64_t>(cpu.period().value());
  if (cpu.shares().value() != 0) spec.shares = static_cast<std::int64_t>(cpu.shares().value());
  return spec;
}

Described Translator::described(const proto::nri::PodSandbox& pod,
                                const proto::nri::Container& container) const {
  Described described = this->described(container);
  described.candidate.pod_uid = base::printable(pod.uid());
  described.candidate.pod_name = name_of(pod);
  described.pod_cgroup = cgroup_of(pod);
  described.candidate.requested = requested_class(pod, container.name());
  described.pod = needs_of(pod);
  return described;
}

Described Translator::described(const proto::nri::Container& container) const {
  const auto spec = whole(container);
  return {.candidate = {.sandbox = container.pod_sandbox_id(),
                        .id = container.id(),
                        .pod_uid = {},
                        .pod_name = {},
                        .name = base::printable(container.name()),
                        .requested = {},
                        .quota = spec.quota.value_or(0),
                        .period = spec.period.value_or(0)},
          .needs = needs_of(container.linux().resources()),
          .pod = {},
          .devices = devices_of(container),
          .pod_cgroup = {},
          .cgroup = base::printable(container.linux().cgroups_path(), base::kMaxPath),
          .cpus = spec.cpus.value_or(policy::CpuSet{}),
          .mems = spec.mems.value_or(policy::NodeSet{}),
          .outside_vm = is_outside_vm(container.pod_sandbox_id())};
}

/// A handler's name proves nothing, and a pod without a process of its own may be anything.
bool Translator::is_outside_vm(const std::string& pod) const {
  const auto known = pods_.find(pod);
  return known != pods_.end() && known->second.is_pods_own && known->second.pid > 0 &&
         !known->second.process.is_vmm && !unseen_.contains(pod);
}

void Translator::complete(Described& described) const {
  const auto known = pods_.find(described.candidate.sandbox);
  if (known == pods_.end()) return;
  described.candidate.pod_uid = known->second.uid;
  described.candidate.pod_name = known->second.name;
  described.pod_cgroup = known->second.cgroup;
  described.outside_vm = is_outside_vm(described.candidate.sandbox);
}

std::optional<bool> Translator::wants_environment(const proto::nri::PodSandbox& pod) const {
  const auto found = pod.annotations().find("kata-affinity.io/environment");
  if (found == pod.annotations().end()) return std::nullopt;
  if (found->second == "true") return true;
  if (found->second == "false") return false;
  log_.warning("annotation kata-affinity.io/environment is neither true nor false",
               {{"sandbox", base::printable(pod.id())}});
  return std::nullopt;
}

std::vector<policy::ledger::Event> Translator::poll() {
  std::vector<policy::ledger::Event> events;
  for (auto& [id, known] : pods_) {
    if (!is_polled(id, known)) continue;
    if (auto news = poll(id, known)) events.push_back({policy::ledger::Source::kNri, *news});
  }
  for (const policy::ledger::Event& event : events) {
    if (const auto* gone = std::get_if<policy::ledger::PodGone>(&event.body)) forget(gone->id);
  }
  return events;
}

bool Translator::is_polled(const std::string& id, const Pod& known) const {
  if (known.process.is_vmm || known.pid == 0) return false;
  return known.is_pods_own || unseen_.contains(id);
}

std::optional<policy::ledger::EventBody> Translator::poll(const std::string& id, Pod& known) {
  if (unseen_.contains(id)) return poll_unseen(id, known);
  const auto process = probe_(known.pid, known.origin);
  if (!process && !is_gone(process)) return std::nullopt;
  if (!process || process->id != known.process.id) return policy::ledger::PodGone{id};
  return became_vmm(id, known, *process);
}

/// A process that was started after the runtime named its number is another's.
std::optional<policy::ledger::EventBody> Translator::poll_unseen(const std::string& id,
                                                                 Pod& known) {
  const auto process = probe_(known.pid, known.origin);
  if (!process && !is_gone(process)) {
    record_unseen(id, known, process.error().message);
    return std::nullopt;
  }
  unseen_.erase(id);
  if (process && base::started_at(process->id.start_time) <= known.named) {
    return became_vmm(id, known, *process);
  }
  if (known.is_pods_own) return policy::ledger::PodGone{id};
  known.pid = 0;
  return std::nullopt;
}

std::optional<policy::ledger::EventBody> Translator::became_vmm(const std::string& id, Pod& known,
                                                                const Process& process) {
  known.process = process;
  if (!process.is_vmm) return std::nullopt;
  policy::ledger::PodSeen seen;
  seen.id = id;
  seen.vmm = process.id;
  return seen;
}

void Translator::forget(const std::string& pod) {
  pods_.erase(pod);
  unseen_.erase(pod);
}

void Translator::forget_all() {
  pods_.clear();
  unseen_.clear();
}

}  // namespace ka::nri
