// SPDX-License-Identifier: Apache-2.0
// A node as a tree of files, with a kubelet and a containerd that follow the manifests on it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/selftest/proof.hpp"
#include "base/files.hpp"
#include "base/json/json.hpp"
#include "tests/temp_dir.hpp"

namespace ka::tests {

inline policy::CpuSet cpus(std::string_view list) {
  return *policy::parse_list<policy::CpuTag>(list);
}

class SelftestNode {
 public:
  static constexpr const char* kManifests = "etc/kubernetes/manifests";
  static constexpr const char* kState = "var/lib/kubelet/cpu_manager_state";
  static constexpr const char* kTasks = "run/containerd/io.containerd.runtime.v2.task/k8s.io/";

  SelftestNode() {
    std::filesystem::create_directories(root_.path() / kManifests);
    write_state("");
    process(1, "kubelet", {"kubelet", "--config", "/etc/kubelet.yaml"}, "/");
    root_.write("etc/kubelet.yaml", "staticPodPath: /etc/kubernetes/manifests\n");
  }

  const TempDir& root() const { return root_; }
  const std::map<int, policy::CpuSet>& masks() const { return masks_; }

  cli::selftest::Reader reader() {
    return {root_.path(), [this](int tid) -> base::Result<policy::CpuSet> {
              const auto found = masks_.find(tid);
              if (found == masks_.end()) return base::fail(base::ErrorCode::kGone, "ended");
              return found->second;
            }};
  }

  /// A process of one thread per mask, from `pid` on.
  void process(int pid, const std::string& comm, const std::vector<std::string>& words,
               const std::string& cgroup, const std::vector<std::string>& threads = {"0-7"}) {
    const std::string folder = fmt::format("proc/{}/", pid);
    std::string line;
    for (const std::string& word : words) line += word + '\0';
    root_.write(folder + "cmdline", line);
    root_.write(folder + "cgroup", "0::" + cgroup + "\n");
    int tid = pid;
    for (const std::string& mask : threads) {
      std::string fields;
      for (int field = 4; field < 53; ++field) fields += " 1";
      root_.write(fmt::format("{}task/{}/stat", folder, tid),
                  fmt::format("{} ({}) S{}\n", tid, comm, fields));
      root_.write(folder + "stat", fmt::format("{} ({}) S{}\n", pid, comm, fields));
      masks_[tid++] = cpus(mask);
    }
  }

  void task(const std::string& id, const std::string& sandbox, const std::string& uid,
            const std::string& container, const std::string& shim) {
    const std::string folder = kTasks + id + '/';
    root_.write(folder + "shim-binary-path", "/usr/bin/containerd-shim-" + shim + "-v2");
    root_.write(
        folder + "config.json",
        fmt::format(
            R"({{"annotations":{{"io.kubernetes.cri.sandbox-id":"{}",
                  "io.kubernetes.cri.sandbox-uid":"{}"{}}}}})",
            sandbox, uid,
            container.empty() ? "" : ",\"io.kubernetes.cri.container-name\":\"" + container + '"'));
  }

  /// containerd 2 names the shim of each sandbox, and not again that of its containers.
  void forget_containers_shims() {
    for (const char id : {'b', 'd'}) {
      std::filesystem::remove(root_.path() / (kTasks + std::string(64, id)) / "shim-binary-path");
    }
  }

  /// The pod in the VM: QEMU's threads 100 to 103, the shim 90.
  void start_vm(const std::string& uid, const std::vector<std::string>& masks) {
    const std::string id(64, 'a');
    task(id, id, uid, "", "kata");
    task(std::string(64, 'b'), id, uid, "app", "kata");
    process(90, "shim", {"containerd-shim-kata-v2", "-id", id}, "/", {"0-1,4-7"});
    process(100, "qemu", {"qemu-system-x86_64", "-name", "sandbox-" + id}, "/", masks);
    root_.write("sys/kernel/debug/kvm/100-9/vcpu0/pid", "101\n");
    root_.write("sys/kernel/debug/kvm/100-9/vcpu1/pid", "102\n");
    root_.write("sys/kernel/debug/kvm/100-9/vcpu2/pid", "103\n");
  }

  void start_runc(const std::string& uid, const std::string& mask) {
    const std::string sandbox(64, 'c'), container(64, 'd');
    task(sandbox, sandbox, uid, "", "runc");
    task(container, sandbox, uid, "app", "runc");
    process(200, "pause", {"/pause"}, "/kubepods/" + sandbox, {"0-7"});
    process(201, "app", {"/pause"}, "/kubepods/" + container, {mask});
  }

  void stop_all() {
    for (const char* gone :
         {"proc/90", "proc/100", "proc/200", "proc/201", "sys/kernel/debug/kvm", kTasks}) {
      std::filesystem::remove_all(root_.path() / gone);
    }
  }

  /// `uid` owns CPUs 2-3; empty: no pod does.
  void write_state(const std::string& uid) {
    root_.write(kState, uid.empty() ? R"({"policyName":"static","defaultCpuSet":"0-7"})"
                                    : fmt::format(R"({{"policyName":"static",
      "defaultCpuSet":"0-1,4-7","entries":{{"{}":{{"app":"2-3"}}}}}})",
                                                  uid));
  }

  /// The uid in a manifest that kubelet would read; empty where there is none.
  std::string uid_of(const std::string& pod) const {
    const auto text = base::read_file(root_.path() / kManifests / (pod + ".json"));
    const auto manifest = base::parse_json(text.value_or(""), "manifest");
    return manifest ? cli::text_of(manifest->at("metadata"), "uid") : "";
  }

 private:
  TempDir root_;
  std::map<int, policy::CpuSet> masks_;
};

}  // namespace ka::tests
