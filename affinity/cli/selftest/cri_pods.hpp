// SPDX-License-Identifier: Apache-2.0
// The self-test's pods through the CRI, where no kubelet runs: their CPUs are those that the
// self-test creates their containers with. All pods with our label are ours, so that nothing needs
// to be recorded.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "affinity/cli/selftest/launcher.hpp"
#include "policy/facts/id_set.hpp"
#include "shim-ext/cri/runtime.hpp"

namespace ka::cli::selftest {

/// The socket of an endpoint, given as crictl takes it ("unix:///run/containerd/containerd.sock")
/// or as a path; for an empty one the first of the runtimes' own that is below `root`.
base::Result<std::filesystem::path> find_runtime(const std::filesystem::path& root,
                                                 const std::string& endpoint);

class CriPods final : public Launcher {
 public:
  /// `online`: the node's CPUs.
  CriPods(cri::Runtime runtime, policy::CpuSet online);

  Finding::By witness() const override { return Finding::By::kRuntime; }
  /// By kubelet's rule: a container owns its cpuset if its quota, or its request, is as large.
  base::Result<Assignments> assignments() const override;
  base::Result<void> start(const Pod& pod) override;
  base::Result<void> find_leftovers() override;
  std::vector<std::string> uids() const override { return uids_; }
  base::Result<void> remove() override;
  base::Result<void> forget() override;

  /// Whether this runtime's pods can be read: containerd's.
  base::Result<void> check() const;
  /// CPUs in the cpusets of containers that may not run everywhere.
  base::Result<policy::CpuSet> bound_cpus() const;
  base::Result<std::vector<std::string>> images() const { return runtime_.images(); }
  /// Empty where the runtime does not report it.
  base::Result<std::string> sandbox_image() const;

 private:
  struct Bound {
    std::string pod_uid;
    std::string name;
    cri::Resources resources;
  };
  base::Result<std::vector<Bound>> bound_containers() const;

  cri::Runtime runtime_;
  policy::CpuSet online_;
  std::vector<std::string> uids_;
};

}  // namespace ka::cli::selftest
