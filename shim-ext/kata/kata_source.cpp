// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/kata_source.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/files.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"
#include "vmm/threads.hpp"

namespace ka::kata {

namespace ledger = policy::ledger;

namespace {

using Events = std::vector<ledger::Event>;

const std::string kMask(policy::kSandboxMask), kRest(policy::kSandboxRest);

bool has_mask(const ledger::PodRecord& pod) { return pod.containers.contains(kMask); }

/// Whether another source reports the containers themselves (the shim proxy, the API).
bool has_others(const ledger::PodRecord& pod) {
  return std::ranges::any_of(pod.containers,
                             [](const auto& entry) { return !policy::is_mask(entry.first); });
}

/// Whether all that is known of the containers came from a container runtime.
bool is_by_runtime(const ledger::PodRecord& pod) {
  return std::ranges::all_of(pod.containers, [](const auto& entry) {
    return entry.second.source == ledger::Source::kNri;
  });
}

/// The runtime that reported the containers reports no more, and the mask is another one.
bool is_outdated(const source::SandboxState& sandbox, const policy::CpuSet& mask) {
  policy::CpuSet reported;
  for (const auto& [id, container] : sandbox.pod.containers) {
    if (!container.facts.exited) reported |= container.facts.cpus;
  }
  return !sandbox.cgroup_managed && !mask.empty() && mask != reported;
}

ledger::Event starting(const Bundle& bundle, const policy::ProcessId& shim) {
  ledger::PodSeen pod;
  pod.id = bundle.id;
  pod.pod_uid = base::printable(bundle.pod_uid);
  pod.pod_name = base::printable(bundle.pod_name);
  pod.vmm = shim;
  return {ledger::Source::kBundle, std::move(pod)};
}

}  // namespace

KataSource::KataSource(boost::asio::io_context& io, const base::Clock& clock, source::Node& node,
                       vmm::Roots roots, const KataWatch::Folders& folders, Runtime runtime,
                       const log::Log& log)
    : clock_(clock),
      node_(node),
      roots_(std::move(roots)),
      runtime_(runtime),
      watch_(io, clock, folders,
             {.report = [this](const Events& events) { report(events); },
              .starting = [this](const ledger::Event& event) { narrow_shim(event); },
              .find_named =
                  [this](const NamedVmm& named) {
                    return kata::find_named(roots_, clock_, node_.ledger(), named);
                  },
              .shim_by_bundle =
                  [this](const auto& tasks, const std::string& id) {
                    return vmm::shim_by_bundle(roots_, tasks, id);
                  },
              .find_shims = [this] { return vmm::find_shims(roots_); },
              .vmm_of_shim = [this](const auto& shim) { return vmm::vmm_of_shim(roots_, shim); },
              .has_vmm =
                  [this](const std::string& id) {
                    const ledger::PodRecord* pod = node_.ledger().find(id);
                    return pod != nullptr && pod->vmm;
                  }},
             log),
      bundles_(io, clock, folders.tasks,
               {.shim_in_bundle =
                    [this](const Bundle& bundle) {
                      return vmm::shim_in_bundle(roots_, bundle.directory, bundle.id);
                    },
                .starting_shims = [this] { return vmm::starting_shims(roots_); },
                .handle = [this](const auto& found) { return observe_bundles(found); }}),
      probes_(io, clock, [this](const std::string& id) { return probe_starting(id); }) {}

void KataSource::refresh() {
  bundles_.refresh();
  watch_.refresh();
  forget_ended();
  observe_masks();
  show_extent();
  node_.set_late(ledger::Source::kPersist, watch_.late());
  node_.set_late(ledger::Source::kBundle, bundles_.late());
  update_synced();
}

/// What the file of a sandbox named counts until its directory is gone.
void KataSource::forget_ended() {
  if (paused_ || !watch_.has_listed()) return;
  Events gone;
  for (const auto& [id, vmm] : node_.ledger().ended().all()) {
    const bool is_there = watch_.knows(id) || node_.ledger().find(id) != nullptr;
    if (vmm.source == ledger::Source::kPersist && !is_there) {
      gone.push_back({ledger::Source::kPersist, ledger::PodGone{id}});
    }
  }
  node_.handle(gone);
}

/// A sandbox whose containers could not be read may own any CPU.
void KataSource::update_synced() {
  if (watch_.is_complete()) node_.synced(ledger::Source::kPersist);
}

void KataSource::notify(source::Notice notice) {
  switch (notice) {
    case source::Notice::kRuntimeConnected:
      return set_paused(true);
    case source::Notice::kRuntimeDisconnected:
      return set_paused(false);
    case source::Notice::kRuntimeReported:
    case source::Notice::kCgroupWritten:
      return observe_masks();
    case source::Notice::kLineRan:
      return;
  }
}

/// Reports nothing of containers while another source does.
void KataSource::set_paused(bool paused) {
  paused_ = paused;
  watch_.set_paused(paused);
  show_extent();
}

void KataSource::report(const Events& events) {
  node_.narrow(events, base::Deadline::none());
  update_synced();
  node_.finish({});
  observe_masks();
  show_extent();
}

/// The result: those that are done.
std::set<std::filesystem::path> KataSource::observe_bundles(
    const std::vector<BundleWatch::Found>& found) {
  std::set<std::filesystem::path> done;
  std::vector<BundleWatch::Found> starting;
  for (const BundleWatch::Found& one : found) {
    if (needs_no_shim(one)) {
      done.insert(one.bundle.directory);
    } else {
      starting.push_back(one);
    }
  }
  narrow_starting(starting);
  for (const BundleWatch::Found& one : starting) {
    if (is_handled(one)) done.insert(one.bundle.directory);
  }
  return done;
}

/// There is a VMM, or something else stands for it.
bool KataSource::needs_no_shim(const BundleWatch::Found& found) const {
  if (vmm::vmm_of_shim(roots_, found.shim)) return true;
  const ledger::PodRecord* known = node_.ledger().find(found.bundle.id);
  return known != nullptr && known->vmm && known->vmm != found.shim;
}

/// Each shim is treated as its VMM, which inherits its mask.
void KataSource::narrow_starting(const std::vector<BundleWatch::Found>& found) {
  Events news;
  for (const auto& [bundle, shim] : found) {
    const ledger::PodRecord* known = node_.ledger().find(bundle.id);
    if (known == nullptr || !known->vmm) {
      news.push_back(starting(bundle, shim));
    } else {
      node_.observe(bundle.id);
    }
  }
  if (!news.empty()) report_starting(news);
}

/// Each names a shim.
void KataSource::report_starting(const Events& events) {
  report(events);
  for (const ledger::Event& event : events) {
    probes_.add(std::get<ledger::PodSeen>(event.body).id);
  }
}

/// False: it has ended, or its VMM is known.
bool KataSource::probe_starting(const std::string& sandbox) {
  const ledger::PodRecord* known = node_.ledger().find(sandbox);
  if (known == nullptr || !known->vmm) return false;
  if (!vmm::is_shim_of(roots_, *known->vmm, sandbox)) return false;
  node_.observe(sandbox);
  return true;
}

/// False: a process that is still executing its program was not trusted, or not narrowed, and must
/// be checked again.
bool KataSource::is_handled(const BundleWatch::Found& found) const {
  const auto sandbox = node_.sandbox(found.bundle.id);
  if (!sandbox) return false;
  if (sandbox->observed || sandbox->released) return true;
  if (!sandbox->placed) return false;
  node_.count_narrowed_shim(found.bundle.id,
                            clock_.since_boot() - base::started_at(found.shim.start_time));
  return true;
}

/// Nothing where a VMM is known: it may be that only its kinship with the shim cannot be seen.
void KataSource::narrow_shim(const ledger::Event& event) {
  const std::string& sandbox = std::get<ledger::PodSeen>(event.body).id;
  const ledger::PodRecord* known = node_.ledger().find(sandbox);
  if (known == nullptr || !known->vmm) report_starting({event});
}

/// Reads the masks of sandboxes for which no other source reports.
void KataSource::observe_masks() {
  drop_masks();
  if (paused_) return;
  Events news;
  for (const std::string& id : node_.sandbox_ids()) {
    const ledger::PodRecord* pod = node_.ledger().find(id);
    if (pod == nullptr) continue;
    if (has_mask(*pod)) masks_.insert(id);
    if (!may_observe(*pod)) continue;
    if (const auto sandbox = node_.sandbox(id)) observe_mask(*sandbox, news);
  }
  node_.handle(news);
}

/// Whether a pod's mask can be news: nothing else is known, or only what a runtime reported that is
/// not there any more.
bool KataSource::may_observe(const ledger::PodRecord& pod) const {
  if (has_others(pod)) return runtime_ == Runtime::kNone && is_by_runtime(pod);
  return pod.source == ledger::Source::kCgroup || has_mask(pod);
}

/// A mask is less than what other sources report of the containers themselves.
void KataSource::drop_masks() {
  Events news;
  for (const std::string& id : std::exchange(masks_, {})) {
    const ledger::PodRecord* pod = node_.ledger().find(id);
    if (pod == nullptr || !has_mask(*pod)) continue;
    if (has_others(*pod)) {
      for (const std::string& part : {kMask, kRest}) {
        news.push_back({ledger::Source::kCgroup, ledger::ContainerGone{id, part}});
      }
    } else {
      masks_.insert(id);
    }
  }
  node_.handle(news);
}

void KataSource::observe_mask(const source::SandboxState& sandbox, Events& news) {
  const std::string& id = sandbox.pod.id;
  const bool others = has_others(sandbox.pod);
  if (sandbox.cgroup.empty()) return;
  const auto text = base::read_file(std::filesystem::path(sandbox.cgroup) / "cpuset.cpus");
  const auto cpus = policy::parse_list<policy::CpuTag>(text.value_or(""));
  if (!cpus || (others && !is_outdated(sandbox, *cpus))) return;
  for (const auto& [container, record] : sandbox.pod.containers) {
    if (others) news.push_back({ledger::Source::kCgroup, ledger::ContainerGone{id, container}});
  }
  masks_.insert(id);
  ledger::PodSeen pod{.id = id, .pod_uid = sandbox.pod_uid};
  ledger::ContainerSeen mask{.sandbox = id, .id = kMask, .spec = {.cpus = *cpus}};
  news.push_back({ledger::Source::kCgroup, std::move(pod)});
  news.push_back({ledger::Source::kCgroup, std::move(mask)});
}

void KataSource::show_extent() {
  show(ledger::Source::kPersist, watch_.extent(false),
       "Kata's Go runtime: containers, but not their exits");
  show(ledger::Source::kCgroup, watch_.extent(true),
       "Kata's runtime-rs: sandbox masks, no containers");
  show_proxies();
}

/// While the container runtime reports, nothing is missed of what it knows.
void KataSource::show(ledger::Source source, const KataWatch::Extent& extent,
                      const char* reported) {
  if (paused_) {
    const std::string unseen = extent.missed.empty() ? "" : "; " + extent.missed;
    node_.set_status(source, {true, "idle while NRI reports the pods" + unseen});
  } else if (!extent.missed.empty()) {
    node_.set_status(source, {false, extent.missed});
  } else {
    const std::string sandboxes = extent.read == 1 ? " sandbox of " : " sandboxes of ";
    node_.set_status(source, {true, std::to_string(extent.read) + sandboxes + reported});
  }
}

/// A proxy reports through the API, and only what passes it: whether it is there is seen by its
/// process.
void KataSource::show_proxies() {
  int number = 0;
  std::string lost;
  for (const auto& [id, pod] : node_.ledger().pods()) {
    if (!pod.proxy) continue;
    ++number;
    const auto sandbox = node_.sandbox(id);
    const bool is_there = !sandbox || sandbox->processes.contains(pod.proxy->pid);
    if (!is_there) lost += (lost.empty() ? "" : ", ") + id;
  }
  shows_proxies_ |= number > 0;
  if (!shows_proxies_) return;
  const std::string shims = std::to_string(number) + (number == 1 ? " sandbox" : " sandboxes") +
                            " behind the shim proxy: containers, but not their exits";
  node_.set_status(ledger::Source::kProxy,
                   {lost.empty(), lost.empty() ? shims : "proxy process missing for " + lost});
}

}  // namespace ka::kata
