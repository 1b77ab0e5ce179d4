#include "shim-ext/nri/translate.hpp"

#include "shim-ext/proto/nri.pb.h"

namespace ka::nri {
namespace {

constexpr int kStopped = 4;  ///< CONTAINER_STOPPED in api.proto

/// Takes over a list of ids that says something and makes sense.
template <typename Tag>
void take(policy::IdSet<Tag>& known, const std::string& told, const std::string& container,
          const base::Log& log) {
  if (told.empty()) return;
  auto parsed = policy::parse_list<Tag>(told);
  if (parsed) {
    known = std::move(*parsed);
  } else {
    log.warning("the runtime tells a list that cannot be read",
                {{"container", container}, {"list", told}, {"reason", parsed.error().reason}});
  }
}

}  // namespace

Translator::Translator(IsVmm is_vmm, Known known, const base::Log& log)
    : is_vmm_(std::move(is_vmm)), known_(std::move(known)), log_(log) {}

/// Asks once a process; while that cannot be answered, it is asked again. True when the answer is
/// new.
bool Translator::judge(Verdict& verdict, int pid) const {
  if (pid <= 0 || verdict.pid == pid || verdict.is_vmm) return false;
  const auto answer = is_vmm_(pid);
  if (!answer) return false;
  verdict.pid = pid;
  verdict.is_vmm = *answer;
  return true;
}

std::optional<policy::Event> Translator::pod(const proto::nri::PodSandbox& pod, int pid) {
  const auto [entry, added] = pods_.try_emplace(pod.id());
  Verdict& verdict = entry->second;
  const bool judged = judge(verdict, pid);
  if (!added && !judged && verdict.uid == pod.uid()) return std::nullopt;
  verdict.uid = pod.uid();
  verdict.of_pod = pod.pid() != 0;
  policy::PodSeen seen;
  seen.id = pod.id();
  seen.pod_uid = pod.uid();
  seen.pod_name = pod.namespace_().empty() ? pod.name() : pod.namespace_() + '/' + pod.name();
  seen.handler = pod.runtime_handler();
  if (verdict.is_vmm) seen.vmm_pid = verdict.pid;
  return policy::Event{policy::Source::kNri, std::move(seen)};
}

policy::Event Translator::container(const proto::nri::Container& container) const {
  policy::ContainerFacts facts;
  facts.id = container.id();
  if (const auto known = known_(container.pod_sandbox_id(), container.id())) {
    facts.cpus = known->cpus;
    facts.mems = known->mems;
  }
  read(container.linux().resources(), facts);
  return seen(container, std::move(facts));
}

policy::Event Translator::updated(const proto::nri::Container& container,
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

policy::Event Translator::seen(const proto::nri::Container& container,
                               policy::ContainerFacts facts) const {
  facts.name = container.name();
  facts.exclusive = false;  // for the ledger to decide
  facts.exited = container.state() == kStopped;
  return {policy::Source::kNri,
          policy::ContainerSeen{container.pod_sandbox_id(), std::move(facts), std::nullopt}};
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

std::vector<std::string> Translator::take_ended() {
  std::vector<std::string> ended;
  for (const auto& [id, verdict] : pods_) {
    if (verdict.is_vmm || !verdict.of_pod || verdict.pid == 0) continue;
    const auto answer = is_vmm_(verdict.pid);
    if (!answer && answer.error().code == base::ErrorCode::kGone) ended.push_back(id);
  }
  for (const std::string& id : ended) forget(id);
  return ended;
}

void Translator::forget(const std::string& pod) { pods_.erase(pod); }

void Translator::forget_all() { pods_.clear(); }

}  // namespace ka::nri
