// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/nri/translate.hpp"

#include <utility>

#include "base/text.hpp"
#include "policy/facts/limits.hpp"
#include "shim-ext/proto/nri.pb.h"

namespace ka::nri {
namespace {

constexpr int kStopped = 4;  ///< CONTAINER_STOPPED in api.proto

/// Takes over a list of ids that says something and makes sense.
template <typename Tag>
void take(policy::IdSet<Tag>& known, const std::string& told, const std::string& container,
          const log::Log& log) {
  if (told.empty()) return;
  auto parsed = policy::parse_list<Tag>(told);
  if (parsed && !told.ends_with('\n')) {
    known = std::move(*parsed);
  } else {
    log.warning("the runtime tells a list that cannot be read",
                {{"container", base::printable(container)},
                 {"list", base::printable(told)},
                 {"reason", parsed ? "it ends in a newline" : parsed.error().reason}});
  }
}

/// The domain that a pod says it is; nothing where no domain can be called so.
std::string domain_wish(const proto::nri::PodSandbox& pod) {
  constexpr std::size_t kLongest = 255;
  const auto found = pod.annotations().find("kata-affinity.io/libvirt_domain");
  if (found == pod.annotations().end()) return {};
  return base::is_printable(found->second, kLongest) ? found->second : std::string();
}

/// A pod's own process is the VMM or the runtime's pause program; what a container runs is its
/// owner's choice, and so is all that a runtime without VMs starts.
Of of(const proto::nri::PodSandbox& pod) {
  const std::string& handler = pod.runtime_handler();
  const bool has_vms = handler != "runc" && handler != "crun";
  return pod.pid() != 0 && has_vms ? Of::kPod : Of::kContainer;
}

}  // namespace

Translator::Translator(Look look, Known known, const log::Log& log)
    : look_(std::move(look)), known_(std::move(known)), log_(log) {}

/// Looks once at a process, or `afresh`; while that cannot be done, it is tried again. True when
/// the answer is new.
bool Translator::judge(Verdict& verdict, int pid, bool afresh) const {
  if (pid <= 0 || verdict.process.is_vmm || (verdict.pid == pid && !afresh)) return false;
  const auto process = look_(pid, verdict.of);
  if (!process) return false;
  const bool is_new = std::exchange(verdict.pid, pid) != pid || process->is_vmm;
  verdict.process = *process;
  return is_new;
}

std::optional<policy::ledger::Event> Translator::pod(const proto::nri::PodSandbox& pod, int pid,
                                                     bool afresh) {
  if (!base::is_id(pod.id()) ||
      (pods_.size() >= policy::kMaxSandboxes && !pods_.contains(pod.id()))) {
    log_.warning("a pod of the runtime is not followed",
                 {{"sandbox", base::printable(pod.id())},
                  {"reason", base::is_id(pod.id()) ? "there are too many" : "its id is none"}});
    return std::nullopt;
  }
  const auto [entry, added] = pods_.try_emplace(pod.id());
  Verdict& verdict = entry->second;
  verdict.is_pods_own = pod.pid() != 0;
  verdict.of = of(pod);
  const bool judged = judge(verdict, pid, afresh);
  if (!added && !judged && verdict.uid == pod.uid()) return std::nullopt;
  verdict.uid = pod.uid();
  policy::ledger::PodSeen seen;
  seen.id = pod.id();
  seen.pod_uid = base::printable(pod.uid());
  seen.pod_name =
      base::printable(pod.namespace_().empty() ? pod.name() : pod.namespace_() + '/' + pod.name());
  seen.handler = base::printable(pod.runtime_handler());
  seen.domain_wish = domain_wish(pod);
  if (verdict.process.is_vmm) seen.vmm = verdict.process.id;
  return policy::ledger::Event{policy::ledger::Source::kNri, std::move(seen)};
}

policy::ledger::Event Translator::container(const proto::nri::Container& container) const {
  policy::ContainerFacts facts;
  facts.id = container.id();
  if (const auto known = known_(container.pod_sandbox_id(), container.id())) {
    facts.cpus = known->cpus;
    facts.mems = known->mems;
  }
  read(container.linux().resources(), facts);
  return seen(container, std::move(facts));
}

policy::ledger::Event Translator::updated(const proto::nri::Container& container,
                                          const proto::nri::LinuxResources& resources) const {
  policy::ContainerFacts facts;
  facts.id = container.id();
  if (const auto known = known_(container.pod_sandbox_id(), container.id())) {
    facts = *known;
  } else {
    read(container.linux().resources(), facts);
  }
  read(resources, facts);
  return seen(container, std::move(facts));
}

policy::ledger::Event Translator::seen(const proto::nri::Container& container,
                                       policy::ContainerFacts facts) const {
  facts.name = base::printable(container.name());
  facts.exclusive = false;  // for the ledger to decide
  facts.exited = container.state() == kStopped;
  return {
      policy::ledger::Source::kNri,
      policy::ledger::ContainerSeen{container.pod_sandbox_id(), std::move(facts), std::nullopt}};
}

void Translator::read(const proto::nri::LinuxResources& resources,
                      policy::ContainerFacts& facts) const {
  const auto& cpu = resources.cpu();
  take(facts.cpus, cpu.cpus(), facts.id, log_);
  take(facts.mems, cpu.mems(), facts.id, log_);
  // The CRI's 0 is "not told": runtimes leave such a value as it is.
  if (cpu.quota().value() != 0) facts.quota = cpu.quota().value();
  if (cpu.period().value() != 0) facts.period = static_cast<std::int64_t>(cpu.period().value());
}

std::optional<bool> Translator::wants_environment(const proto::nri::PodSandbox& pod) const {
  const auto found = pod.annotations().find("kata-affinity.io/environment");
  if (found == pod.annotations().end()) return std::nullopt;
  if (found->second == "true") return true;
  if (found->second == "false") return false;
  log_.warning("a pod's annotation kata-affinity.io/environment is neither true nor false",
               {{"sandbox", base::printable(pod.id())}});
  return std::nullopt;
}

std::vector<policy::ledger::Event> Translator::look_again() {
  std::vector<policy::ledger::Event> events;
  for (auto& [id, verdict] : pods_) {
    if (verdict.process.is_vmm || !verdict.is_pods_own || verdict.pid == 0) continue;
    if (auto news = look_again(id, verdict))
      events.push_back({policy::ledger::Source::kNri, *news});
  }
  for (const policy::ledger::Event& event : events) {
    if (const auto* gone = std::get_if<policy::ledger::PodGone>(&event.body)) forget(gone->id);
  }
  return events;
}

std::optional<policy::ledger::EventBody> Translator::look_again(const std::string& id,
                                                                Verdict& verdict) const {
  const auto process = look_(verdict.pid, verdict.of);
  if (!process && process.error().code != base::ErrorCode::kGone) return std::nullopt;
  if (!process || process->id != verdict.process.id) return policy::ledger::PodGone{id};
  if (!process->is_vmm) return std::nullopt;
  verdict.process = *process;
  policy::ledger::PodSeen seen;
  seen.id = id;
  seen.vmm = verdict.process.id;
  return seen;
}

void Translator::forget(const std::string& pod) { pods_.erase(pod); }

void Translator::forget_all() { pods_.clear(); }

}  // namespace ka::nri
