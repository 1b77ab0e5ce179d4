// SPDX-License-Identifier: Apache-2.0
// The pods of the self-test: what this node allows, and their manifests. Pure.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "affinity/cli/selftest/kubelet.hpp"
#include "policy/facts/expected.hpp"

namespace ka::cli::selftest {

/// On every pod and manifest of ours, and on nothing else.
inline constexpr std::string_view kLabel = "kata-affinity.io/selftest";
/// What the names of our pods and manifests begin with.
inline constexpr std::string_view kNamePrefix = "kata-affinity-selftest-";

/// What the node has that the pods need.
struct NodeFacts {
  Kubelet kubelet;
  Assignments assignments;
  std::vector<std::string> handlers;  ///< containerd's that run Kata
  std::vector<std::string> images;    ///< containerd's, by name
  std::string sandbox_image;          ///< that containerd is configured with; may be empty
  bool has_kvm_debugfs = false;
};

/// What was asked for on the command line; empty: chosen here.
struct Wishes {
  std::string handler;
  std::string runtime_class;
  std::string image;
  bool demo = false;  ///< the pod's VM is released for a while
};

struct Choice {
  std::string runtime_class;  ///< empty: by containerd's annotation for untrusted workloads
  std::string image;
  int cpus = 0;
};

/// Why the node cannot run the self-test is the error, with the remedy.
Expected<Choice, std::string> choose(const NodeFacts& facts, const Wishes& wishes);

struct Pod {
  std::string name;
  std::string uid;
  std::string manifest;  ///< JSON
};

/// Guaranteed, in a VM, with CPUs of its own.
Pod vm_pod(const Choice& choice, const std::string& uid);

/// Burstable, in the node's default runtime, in the shared pool.
Pod shared_pod(const Choice& choice, const std::string& uid);

}  // namespace ka::cli::selftest
