// SPDX-License-Identifier: Apache-2.0
// The pods of the self-test: what this node allows, and what they are. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/cli/selftest/assignments.hpp"
#include "affinity/cli/selftest/kubelet.hpp"
#include "policy/facts/expected.hpp"

namespace ka::cli::selftest {

/// On every pod and manifest of ours, and on nothing else.
inline constexpr std::string_view kLabel = "kata-affinity.io/selftest";
/// What the names of our pods and manifests begin with.
inline constexpr std::string_view kNamePrefix = "kata-affinity-selftest-";

/// Where the VM's container has the program that shows its affinity (guest_affinity_commands()).
inline constexpr std::string_view kShowAffinity = "/kata-affinity-agent";

/// What the node has that the pods need.
struct NodeFacts {
  std::optional<Kubelet> kubelet;  ///< absent: pods are started through the CRI
  Assignments assignments;
  policy::CpuSet in_use;  ///< without kubelet: CPUs that containers are bound to, or that are owned
  std::vector<std::string> handlers;  ///< containerd's that run Kata, also by the proxy
  std::vector<std::string> images;    ///< containerd's, by name
  std::string sandbox_image;          ///< that containerd is configured with; may be empty
  bool has_kvm_debugfs = false;
  std::string agent = {};  ///< the guest agent's program on this node; empty: it is not installed
};

/// What was asked for on the command line; empty: chosen here.
struct PodOptions {
  std::string handler;
  std::string runtime_class;
  std::string image;
  bool demo = false;  ///< the pod's VM is released for a while
};

struct Choice {
  /// Empty: by containerd's annotation for untrusted workloads. Without kubelet: the handler.
  std::string runtime_class;
  std::string image;
  int cpus = 0;
  policy::CpuSet own;      ///< of the pod in a VM; empty: kubelet chooses
  policy::CpuSet pool;     ///< of the other; empty: kubelet chooses
  std::string agent = {};  ///< mounted at kShowAffinity into the pod in a VM; empty: nothing is
};

/// Why the node cannot run the self-test is the error, with the remedy.
Expected<Choice, std::string> choose(const NodeFacts& facts, const PodOptions& options);

struct Pod {
  std::string name;
  std::string uid;
  bool is_vm = false;
  Choice choice;
};

/// Guaranteed, in a VM, with CPUs of its own.
Pod vm_pod(const Choice& choice, const std::string& uid);

/// Burstable, in the node's default runtime, in the shared pool.
Pod shared_pod(const Choice& choice, const std::string& uid);

/// JSON, for kubelet. Nothing is pulled.
std::string manifest_of(const Pod& pod);

}  // namespace ka::cli::selftest
