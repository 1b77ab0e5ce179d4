// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/cri_pods.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "policy/ledger/ledger.hpp"

namespace ka::cli::selftest {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;

constexpr std::array kSockets{"run/containerd/containerd.sock", "run/crio/crio.sock"};
constexpr std::string_view kScheme = "unix://";
constexpr const char* kNamespace = "kata-affinity";
constexpr std::int64_t kQuotaPeriod = 100'000;
constexpr std::int64_t kSharesPerCpu = 1024;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kVmMemory = 512 * kMiB, kSharedMemory = 64 * kMiB;
constexpr std::int64_t kFewShares = 10;

cri::Labels labels() { return {{std::string(kLabel), "true"}}; }

/// As kubelet has it for a Guaranteed pod, and for a burstable one.
cri::Resources resources_of(const Pod& pod) {
  const Choice& choice = pod.choice;
  if (pod.is_vm) {
    return {choice.own, choice.cpus * kQuotaPeriod, kQuotaPeriod, choice.cpus * kSharesPerCpu,
            kVmMemory};
  }
  return {choice.pool, 0, 0, kFewShares, kSharedMemory};
}

std::vector<cri::Mount> mounts_of(const Pod& pod) {
  if (!pod.is_vm || pod.choice.agent.empty()) return {};
  return {{pod.choice.agent, std::string(kShowAffinity)}};
}

/// runc needs a slice where systemd makes the cgroups; this one is always there.
cri::PodConfig describe(const Pod& pod, bool systemd) {
  cri::PodConfig config{pod.name, pod.uid,          kNamespace, systemd ? "system.slice" : "",
                        labels(), resources_of(pod)};
  config.resources.cpus = {};
  return config;
}

bool is_exclusive(const cri::Resources& resources) {
  policy::ContainerFacts facts;
  facts.cpus = resources.cpus;
  facts.quota = resources.quota;
  facts.period = resources.period;
  facts.shares = resources.shares;
  return policy::ledger::exclusive_by_quota(facts) || policy::ledger::exclusive_by_request(facts);
}

}  // namespace

Result<fs::path> find_runtime(const fs::path& root, const std::string& endpoint) {
  if (!endpoint.empty()) {
    return fs::path(endpoint.starts_with(kScheme) ? endpoint.substr(kScheme.size()) : endpoint);
  }
  for (const char* socket : kSockets) {
    std::error_code ignored;
    if (fs::exists(root / socket, ignored)) return root / socket;
  }
  return base::fail(ErrorCode::kNotFound,
                    "no container runtime runs: no /run/containerd/containerd.sock. Start it, or "
                    "without kubelet use --runtime-endpoint SOCKET");
}

CriPods::CriPods(cri::Runtime runtime, policy::CpuSet online)
    : runtime_(std::move(runtime)), online_(std::move(online)) {}

Result<void> CriPods::check() const {
  const auto version = runtime_.version();
  if (!version) return unexpected(version.error());
  if (version->runtime == "containerd") return {};
  return base::fail(ErrorCode::kConflict,
                    runtime_.socket().native() + " is of " + version->runtime +
                        ": without kubelet the self-test runs on containerd only");
}

/// A container that has ended since it was listed is left out.
Result<std::vector<CriPods::Bound>> CriPods::bound_containers() const {
  const auto pods = runtime_.pods({});
  if (!pods) return unexpected(pods.error());
  std::map<std::string, std::string> uids;
  for (const cri::Pod& pod : *pods) uids[pod.id] = pod.uid;
  const auto containers = runtime_.containers();
  if (!containers) return unexpected(containers.error());
  std::vector<Bound> bound;
  for (const cri::Container& one : *containers) {
    if (!one.is_live) continue;
    const auto resources = runtime_.resources_of(one.id);
    if (is_gone(resources)) continue;
    if (!resources) return unexpected(resources.error());
    const auto& cpus = resources->cpus;
    if (cpus.empty() || online_.subset_of(cpus)) continue;
    bound.push_back({uids[one.pod_id], one.name, *resources});
  }
  return bound;
}

Result<Assignments> CriPods::assignments() const {
  const auto bound = bound_containers();
  if (!bound) return unexpected(bound.error());
  Assignments found{online_, {}};
  for (const Bound& one : *bound) {
    if (!is_exclusive(one.resources)) continue;
    found.claims.push_back({one.pod_uid, one.name, one.resources.cpus});
    found.pool -= one.resources.cpus;
  }
  return found;
}

Result<policy::CpuSet> CriPods::bound_cpus() const {
  const auto bound = bound_containers();
  if (!bound) return unexpected(bound.error());
  policy::CpuSet cpus;
  for (const Bound& one : *bound) cpus |= one.resources.cpus;
  return cpus;
}

Result<std::string> CriPods::sandbox_image() const {
  const auto settings = runtime_.settings();
  if (!settings) return unexpected(settings.error());
  return settings->sandbox_image;
}

Result<void> CriPods::start(const Pod& pod) {
  const auto settings = runtime_.settings();
  if (!settings) return unexpected(settings.error());
  const cri::PodConfig config = describe(pod, settings->systemd_cgroup);
  uids_.push_back(pod.uid);
  const auto id = runtime_.run_pod(config, pod.is_vm ? pod.choice.runtime_class : "");
  if (!id) return unexpected(id.error());
  const auto container = runtime_.create_container(
      *id, {"app", pod.choice.image, labels(), resources_of(pod), mounts_of(pod)}, config);
  if (!container) return unexpected(container.error());
  return runtime_.start_container(*container);
}

Result<void> CriPods::find_leftovers() {
  const auto pods = runtime_.pods(labels());
  if (!pods) return unexpected(pods.error());
  for (const cri::Pod& pod : *pods) uids_.push_back(pod.uid);
  return {};
}

Result<void> CriPods::remove() {
  const auto pods = runtime_.pods(labels());
  if (!pods) return unexpected(pods.error());
  for (const cri::Pod& pod : *pods) {
    if (auto removed = runtime_.remove_pod(pod.id); !removed) return removed;
  }
  return {};
}

Result<void> CriPods::forget() {
  uids_.clear();
  return {};
}

}  // namespace ka::cli::selftest
