// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/kata_source.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <utility>

#include "affinity/board/board.hpp"
#include "affinity/engine/engine.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "policy/plan/guest.hpp"
#include "vmm/threads.hpp"

namespace ka::daemon {
namespace {

using policy::ledger::Source;

const std::string kMask(policy::plan::kSandboxMask);

/// As Kata's own files name it.
std::optional<policy::ProcessId> vmm_at(const vmm::Roots& roots, int pid) {
  const auto examined = vmm::examine(roots, pid, vmm::Word::kRuntime);
  if (!examined || !examined->is_vmm) return std::nullopt;
  return examined->id;
}

/// kubelet's cgroup of a pod: ".../pod<uid>/...", by systemd "...-pod<uid>.slice/..." with "_" for
/// "-". Empty where there is none.
std::string pod_uid_of(const std::string& cgroup) {
  constexpr std::size_t kLength = 36;
  for (std::size_t at = cgroup.find("pod"); at != std::string::npos;
       at = cgroup.find("pod", at + 1)) {
    std::string uid = cgroup.substr(at + 3, kLength);
    std::ranges::replace(uid, '_', '-');
    const bool is_uid = uid.size() == kLength && std::ranges::all_of(uid, [](char c) {
                          return c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                        });
    if (is_uid) return uid;
  }
  return {};
}

bool has_mask(const policy::ledger::PodRecord& pod) { return pod.containers.contains(kMask); }

/// Whether somebody tells of the containers themselves (the shim proxy, a person).
bool has_others(const policy::ledger::PodRecord& pod) {
  return std::ranges::any_of(pod.containers,
                             [](const auto& container) { return container.first != kMask; });
}

/// All that is known was told by a container runtime that tells no more, and the mask is another
/// one.
bool is_outdated(const engine::SandboxView& view, const policy::CpuSet& mask) {
  const auto& containers = view.pod.containers;
  const bool by_runtime = std::ranges::all_of(
      containers, [](const auto& entry) { return entry.second.source == Source::kNri; });
  policy::CpuSet told;
  for (const auto& [id, container] : containers) {
    if (!container.facts.exited) told |= container.facts.cpus;
  }
  return by_runtime && !view.cgroup_managed && !mask.empty() && mask != told;
}

bool is_placed(const engine::SandboxView& view) {
  return !view.observed && !view.released && !view.threads.empty() &&
         std::ranges::none_of(view.threads, [](const auto& thread) { return thread.drifted(); });
}

/// How long ago a process was started that has this start time in /proc/<pid>/stat.
std::chrono::nanoseconds age_of(std::uint64_t start_time) {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  const std::int64_t ticks = ::sysconf(_SC_CLK_TCK);
  const auto start = static_cast<std::int64_t>(start_time);
  return std::chrono::seconds(now.tv_sec - start / ticks) +
         std::chrono::nanoseconds(now.tv_nsec - start % ticks * kNanoseconds / ticks);
}

}  // namespace

KataSource::KataSource(boost::asio::io_context& io, engine::Engine& engine, board::Board& board,
                       vmm::Roots roots, const watch::KataWatch::Folders& folders,
                       const log::Log& log)
    : engine_(engine),
      board_(board),
      roots_(std::move(roots)),
      watch_(io, folders,
             {.tell = [this](const std::vector<policy::ledger::Event>& events) { take(events); },
              .born = [this](const policy::ledger::Event& event) { narrow_shim(event); },
              .vmm_at = [this](int pid) { return vmm_at(roots_, pid); },
              .shim_by_bundle =
                  [this](const auto& tasks, const std::string& id) {
                    return vmm::shim_by_bundle(roots_, tasks, id);
                  },
              .find_shims = [this] { return vmm::find_shims(roots_); },
              .vmm_of_shim = [this](const auto& shim) { return vmm::vmm_of_shim(roots_, shim); }},
             log),
      bundles_(io, folders.tasks,
               [this](const auto& bundle, auto effort) { return look_at_bundle(bundle, effort); }) {
}

void KataSource::refresh() {
  bundles_.refresh();
  watch_.refresh();
  follow_masks();
  show_extent();
  if (watch_.listed()) engine_.source_spoke(Source::kPersist);
}

void KataSource::rest(bool rests) {
  rests_ = rests;
  watch_.rest(rests);
  show_extent();
}

void KataSource::take(const std::vector<policy::ledger::Event>& events) {
  engine_.narrow(events, std::chrono::hours(1));
  engine_.finish({});
  follow_masks();
  show_extent();
}

/// True: no more is to be done for it.
bool KataSource::look_at_bundle(const watch::Bundle& bundle, watch::BundleWatch::Effort effort) {
  if (!base::is_id(bundle.id)) return true;
  vmm::FoundShim shim = vmm::shim_in_bundle(roots_, bundle.directory, bundle.id);
  if (shim.kind == vmm::ShimKind::kNone && effort == watch::BundleWatch::Effort::kNode) {
    shim = vmm::shim_by_command(roots_, bundle.id);
  }
  if (shim.kind != vmm::ShimKind::kKata) return shim.kind == vmm::ShimKind::kOther;
  return vmm::vmm_of_shim(roots_, shim.id) || narrow_newborn(bundle, shim);
}

/// The shim stands for its VMM, which will be born with what it may use. False: a process that is
/// still becoming its program was not believed, or not narrowed, and is to be looked at again.
bool KataSource::narrow_newborn(const watch::Bundle& bundle, const vmm::FoundShim& shim) {
  const policy::ledger::PodRecord* known = engine_.ledger().find(bundle.id);
  if (known == nullptr || !known->vmm) {
    report_newborn(bundle, shim);
  } else if (known->vmm == shim.id) {
    engine_.look_again(bundle.id);
  } else {
    return true;
  }
  const auto view = engine_.view(bundle.id);
  if (!view) return false;
  if (is_placed(*view)) board_.record_narrowed_shim(bundle.id, age_of(shim.id.start_time));
  return is_placed(*view) || view->observed || view->released;
}

void KataSource::report_newborn(const watch::Bundle& bundle, const vmm::FoundShim& shim) {
  policy::ledger::PodSeen pod;
  pod.id = bundle.id;
  pod.pod_uid = base::printable(bundle.pod_uid);
  pod.pod_name = base::printable(bundle.pod_name);
  pod.vmm = shim.id;
  take({{Source::kBundle, std::move(pod)}});
}

/// Nothing where a VMM is known: it may be that only its kinship with the shim cannot be seen.
void KataSource::narrow_shim(const policy::ledger::Event& event) {
  const std::string& sandbox = std::get<policy::ledger::PodSeen>(event.body).id;
  const policy::ledger::PodRecord* known = engine_.ledger().find(sandbox);
  if (known == nullptr || !known->vmm) take({event});
}

void KataSource::follow_masks() {
  drop_masks();
  if (rests_) return;
  std::vector<policy::ledger::Event> news;
  for (const std::string& id : engine_.sandbox_ids()) {
    if (const auto view = engine_.view(id)) follow_mask(*view, news);
  }
  engine_.handle(news);
}

/// A mask is less than what others tell of the containers themselves.
void KataSource::drop_masks() {
  std::vector<policy::ledger::Event> news;
  for (const std::string& id : std::exchange(masks_, {})) {
    const policy::ledger::PodRecord* pod = engine_.ledger().find(id);
    if (pod == nullptr || !has_mask(*pod)) continue;
    if (has_others(*pod)) {
      news.push_back({Source::kCgroup, policy::ledger::ContainerGone{id, kMask}});
    } else {
      masks_.insert(id);
    }
  }
  engine_.handle(news);
}

void KataSource::follow_mask(const engine::SandboxView& view,
                             std::vector<policy::ledger::Event>& news) {
  if (has_mask(view.pod)) masks_.insert(view.pod.id);
  const bool others = has_others(view.pod);
  const bool is_ours = view.pod.source == Source::kCgroup || has_mask(view.pod);
  if (view.cgroup.empty() || (others ? !takes_over_ : !is_ours)) return;
  const auto text = base::read_file(std::filesystem::path(view.cgroup) / "cpuset.cpus");
  const auto cpus = policy::parse_list<policy::CpuTag>(text.value_or(""));
  if (!cpus || (others && !is_outdated(view, *cpus))) return;
  const std::string& sandbox = view.pod.id;
  for (const auto& [id, container] : view.pod.containers) {
    if (others) news.push_back({Source::kCgroup, policy::ledger::ContainerGone{sandbox, id}});
  }
  policy::ledger::PodSeen pod;
  pod.id = sandbox;
  pod.pod_uid = pod_uid_of(view.cgroup);
  pod.vmm = view.pod.vmm;
  policy::ContainerFacts facts;
  facts.id = kMask;
  facts.cpus = *cpus;
  masks_.insert(sandbox);
  news.push_back({Source::kCgroup, std::move(pod)});
  news.push_back(
      {Source::kCgroup, policy::ledger::ContainerSeen{sandbox, std::move(facts), std::nullopt}});
}

void KataSource::show_extent() {
  const auto extent = watch_.extent();
  const std::string rests = "not needed while the container runtime tells of its pods";
  const auto sandboxes = [](int number, const char* whose) {
    return std::to_string(number) + (number == 1 ? " sandbox of " : " sandboxes of ") + whose;
  };
  board_.set_source(Source::kPersist,
                    {true, rests_ ? rests
                                  : sandboxes(extent.go,
                                              "Kata's Go runtime: their containers, but not "
                                              "which have exited")});
  board_.set_source(Source::kCgroup,
                    {true, rests_ ? rests
                                  : sandboxes(extent.rust,
                                              "Kata's runtime-rs: the mask of each as a "
                                              "whole, not its containers")});
  show_proxies();
}

/// A proxy reports through the API, and only what passes it: whether it is there is seen by its
/// process.
void KataSource::show_proxies() {
  int number = 0;
  std::string lost;
  for (const auto& [id, pod] : engine_.ledger().pods()) {
    if (pod.proxy_pid == 0) continue;
    ++number;
    const auto view = engine_.view(id);
    const bool is_there = !view || std::ranges::any_of(view->threads, [&](const auto& thread) {
      return thread.facts.key.pid == pod.proxy_pid;
    });
    if (!is_there) lost += (lost.empty() ? "" : ", ") + id;
  }
  if (number == 0 && !board_.sources().contains(Source::kProxy)) return;
  const std::string shims = std::to_string(number) +
                            (number == 1 ? " sandbox has" : " sandboxes have") +
                            " it before the shim: their containers, but not which have exited";
  board_.set_source(Source::kProxy,
                    {lost.empty(), lost.empty() ? shims : "its process is not there for " + lost});
}

}  // namespace ka::daemon
