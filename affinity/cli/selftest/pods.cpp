// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/pods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <ranges>

namespace ka::cli::selftest {
namespace {

namespace json = boost::json;
using Refusal = std::string;

constexpr int kMostCpus = 2;
/// containerd's annotation and the handler that it stands for, without a RuntimeClass.
constexpr std::string_view kUntrusted = "io.kubernetes.cri.untrusted-workload";
constexpr std::string_view kUntrustedHandler = "untrusted";

bool contains(const std::vector<std::string>& all, std::string_view one) {
  return std::ranges::find(all, one) != all.end();
}

/// kubelet gives no reserved CPU away; where the reserved ones are not named, it has reserved at
/// least one.
Expected<int, Refusal> count_cpus(const Kubelet& kubelet, const policy::CpuSet& pool) {
  const int kept = std::max((pool & kubelet.reserved).size(), 1);
  const int available = pool.size() - kept;
  if (available >= 1) return std::min(available, kMostCpus);
  return unexpected(
      fmt::format("kubelet has no CPU left to assign: the shared pool is {}, and one CPU "
                  "stays in it. Remove a pod that owns CPUs",
                  policy::format_list(pool)));
}

/// The last CPUs of the pool that no container is bound to. One CPU stays in the pool.
Expected<policy::CpuSet, Refusal> find_free_cpus(const NodeFacts& facts) {
  const auto& pool = facts.assignments.pool;
  policy::CpuSet chosen;
  for (const int cpu : (pool - facts.in_use).ids() | std::views::reverse) {
    if (chosen.size() == std::min(kMostCpus, pool.size() - 1)) break;
    chosen.add(cpu);
  }
  if (!chosen.empty()) return chosen;
  return unexpected(
      fmt::format("no CPU is free: the shared pool is {}, containers are bound to {}, and one CPU "
                  "stays in the pool. Remove a container with a cpuset",
                  policy::format_list(pool), policy::format_list(facts.in_use)));
}

/// Two CPUs, one where the pool has no more.
Expected<void, Refusal> choose_cpus(const NodeFacts& facts, Choice& choice) {
  const auto& pool = facts.assignments.pool;
  if (facts.kubelet) {
    const auto number = count_cpus(*facts.kubelet, pool);
    if (!number) return unexpected(number.error());
    choice.cpus = *number;
    return {};
  }
  const auto own = find_free_cpus(facts);
  if (!own) return unexpected(own.error());
  choice.cpus = own->size();
  choice.own = *own;
  choice.pool = pool - *own;
  return {};
}

/// Without an API server kubelet resolves no RuntimeClass.
Expected<std::string, Refusal> choose_untrusted(const NodeFacts& facts, const PodOptions& options) {
  if (options.handler.empty() && contains(facts.handlers, kUntrustedHandler)) return std::string();
  return unexpected(
      std::string("kubelet runs without an API server and resolves no RuntimeClass. Configure "
                  "a containerd runtime named \"untrusted\" that runs Kata, and omit --handler"));
}

Expected<void, Refusal> check_handler(const NodeFacts& facts, const PodOptions& options) {
  if (options.handler.empty() || contains(facts.handlers, options.handler)) return {};
  return unexpected(fmt::format("containerd has no Kata handler \"{}\"; it has: {}",
                                options.handler, fmt::join(facts.handlers, ", ")));
}

/// The runtime knows no RuntimeClass.
Expected<std::string, Refusal> choose_handler(const NodeFacts& facts, const PodOptions& options) {
  if (!options.runtime_class.empty()) {
    return unexpected(
        std::string("no kubelet runs, and only kubelet resolves a RuntimeClass. Use "
                    "--handler NAME"));
  }
  if (!options.handler.empty()) return options.handler;
  if (!facts.handlers.empty()) return facts.handlers.front();
  return unexpected(std::string("no Kata handler in containerd's configuration"));
}

/// kata-deploy names a RuntimeClass as its handler.
Expected<std::string, Refusal> choose_runtime_class(const NodeFacts& facts,
                                                    const PodOptions& options) {
  if (facts.kubelet && !options.runtime_class.empty()) return options.runtime_class;
  if (auto good = check_handler(facts, options); !good) return unexpected(good.error());
  if (!facts.kubelet) return choose_handler(facts, options);
  if (!facts.kubelet->has_api_server) return choose_untrusted(facts, options);
  if (!options.handler.empty()) return options.handler;
  if (!facts.handlers.empty()) return facts.handlers.front();
  return unexpected(
      std::string("no Kata handler in containerd's configuration. Use --runtime-class NAME"));
}

/// Nothing is pulled: the pause image of the runtime is on every node that ran a pod.
Expected<std::string, Refusal> choose_image(const NodeFacts& facts, const PodOptions& options) {
  if (!options.image.empty()) return options.image;
  if (contains(facts.images, facts.sandbox_image)) return facts.sandbox_image;
  const auto pause = std::ranges::find_if(facts.images, [](const std::string& name) {
    return name.find("/pause:") != std::string::npos;
  });
  if (pause != facts.images.end()) return *pause;
  return unexpected(
      std::string("no pause image on this node. Use --image NAME with an image that is on the "
                  "node and runs until stopped"));
}

/// Without kubelet the runtime itself would pull the image of a pod's pause process.
Expected<void, Refusal> check_sandbox_image(const NodeFacts& facts) {
  const std::string& image = facts.sandbox_image;
  if (facts.kubelet || image.empty() || contains(facts.images, image)) return {};
  return unexpected(
      fmt::format("containerd's sandbox image {} is not on this node, and the self-test pulls "
                  "nothing. Pull it first",
                  image));
}

Expected<void, Refusal> check_node(const NodeFacts& facts) {
  if (facts.kubelet && facts.kubelet->manifests.empty()) {
    return unexpected(
        std::string("kubelet has no staticPodPath. Set one in its configuration and restart it"));
  }
  if (!facts.has_kvm_debugfs) {
    return unexpected(std::string(
        "KVM's debugfs cannot be read, so vCPUs cannot be distinguished from other threads. "
        "Run: mount -t debugfs debugfs /sys/kernel/debug"));
  }
  return check_sandbox_image(facts);
}

/// A released thread may run wherever it could without us.
Expected<void, Refusal> check_demo(const NodeFacts& facts) {
  const policy::CpuSet owned = facts.assignments.all();
  if (owned.empty()) return {};
  return unexpected(
      fmt::format("CPUs {} belong to other pods, and --demo releases the threads of its own pod, "
                  "which may then run there. Omit --demo, or use a node where no pod owns CPUs",
                  policy::format_list(owned)));
}

json::object resources(json::object requests, json::object limits) {
  return {{"requests", std::move(requests)}, {"limits", std::move(limits)}};
}

std::string manifest(json::object metadata, json::object spec, json::object container) {
  metadata["namespace"] = "kube-system";
  metadata["labels"] = {{kLabel, "true"}};
  container["name"] = "app";
  container["imagePullPolicy"] = "Never";
  spec["automountServiceAccountToken"] = false;
  spec["enableServiceLinks"] = false;
  spec["terminationGracePeriodSeconds"] = 1;
  spec["containers"] = json::array{std::move(container)};
  return json::serialize(json::object{{"apiVersion", "v1"},
                                      {"kind", "Pod"},
                                      {"metadata", std::move(metadata)},
                                      {"spec", std::move(spec)}});
}

/// Read-only, and gone with the pod.
void mount_agent(const std::string& agent, json::object& spec, json::object& container) {
  if (agent.empty()) return;
  spec["volumes"] =
      json::array{{{"name", "agent"}, {"hostPath", {{"path", agent}, {"type", "File"}}}}};
  container["volumeMounts"] =
      json::array{{{"name", "agent"}, {"mountPath", kShowAffinity}, {"readOnly", true}}};
}

std::string vm_manifest(const Pod& pod) {
  json::object metadata{{"name", pod.name}, {"uid", pod.uid}};
  json::object spec;
  if (pod.choice.runtime_class.empty()) {
    metadata["annotations"] = {{kUntrusted, "true"}};
  } else {
    spec["runtimeClassName"] = pod.choice.runtime_class;
  }
  const json::object all{{"cpu", std::to_string(pod.choice.cpus)}, {"memory", "512Mi"}};
  json::object container{{"image", pod.choice.image}, {"resources", resources(all, all)}};
  mount_agent(pod.choice.agent, spec, container);
  return manifest(std::move(metadata), std::move(spec), std::move(container));
}

std::string shared_manifest(const Pod& pod) {
  json::object container{
      {"image", pod.choice.image},
      {"resources", resources({{"cpu", "10m"}, {"memory", "16Mi"}}, {{"memory", "64Mi"}})}};
  return manifest({{"name", pod.name}, {"uid", pod.uid}}, {{"hostNetwork", true}},
                  std::move(container));
}

}  // namespace

Expected<Choice, std::string> choose(const NodeFacts& facts, const PodOptions& options) {
  if (auto good = check_node(facts); !good) return unexpected(good.error());
  if (options.demo) {
    if (auto good = check_demo(facts); !good) return unexpected(good.error());
  }
  const auto runtime_class = choose_runtime_class(facts, options);
  if (!runtime_class) return unexpected(runtime_class.error());
  const auto image = choose_image(facts, options);
  if (!image) return unexpected(image.error());
  Choice choice{.runtime_class = *runtime_class, .image = *image, .own = {}, .pool = {}};
  choice.agent = facts.agent;
  if (auto chosen = choose_cpus(facts, choice); !chosen) return unexpected(chosen.error());
  return choice;
}

Pod vm_pod(const Choice& choice, const std::string& uid) {
  return {std::string(kNamePrefix) + "vm", uid, true, choice};
}

Pod shared_pod(const Choice& choice, const std::string& uid) {
  return {std::string(kNamePrefix) + "shared", uid, false, choice};
}

std::string manifest_of(const Pod& pod) {
  return pod.is_vm ? vm_manifest(pod) : shared_manifest(pod);
}

}  // namespace ka::cli::selftest
