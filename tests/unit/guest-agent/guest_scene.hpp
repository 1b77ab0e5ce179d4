// SPDX-License-Identifier: Apache-2.0
// A guest made of files: /proc, /sys and a cgroup tree as a guest's kernel would show them. What
// the agent writes stays in the files; what the kernel would do with a cpuset is played.
#pragma once

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "guest-agent/agent/agent.hpp"
#include "tests/temp_dir.hpp"

namespace ka::tests {

/// Threads are as wide as the machine until somebody narrows them.
class FakeThreads final : public agent::Calls {
 public:
  std::optional<policy::GuestCpuSet> affinity(int tid) const override {
    const auto found = cpus.find(tid);
    return found == cpus.end() ? std::nullopt : std::optional(found->second);
  }
  int set_affinity(int tid, const policy::GuestCpuSet& to) const override {
    if (!cpus.contains(tid)) return ESRCH;
    cpus[tid] = to;
    if (appears_on_next) cpus[std::exchange(appears_on_next, 0)] = policy::GuestCpuSet::range(0, 3);
    return 0;
  }

  mutable std::map<int, policy::GuestCpuSet> cpus;
  mutable int appears_on_next = 0;
};

class GuestScene {
 public:
  enum class Cgroups { kV2, kV1, kOther };

  explicit GuestScene(Cgroups cgroups = Cgroups::kV2) : cgroups_(cgroups) {
    const std::string root = path("cgroup").string();
    switch (cgroups) {
      case Cgroups::kV2:
        files.write("proc/self/mountinfo", "30 1 0:26 / " + root + " rw - cgroup2 cgroup2 rw\n");
        files.write("cgroup/cgroup.controllers", "cpuset cpu memory\n");
        files.write("cgroup/cgroup.subtree_control", "\n");
        break;
      case Cgroups::kV1:
        files.write("proc/self/mountinfo",
                    "30 1 0:26 / " + root + " rw - cgroup cgroup rw,cpuset\n31 1 0:27 / " +
                        path("cpu").string() + " rw - cgroup cgroup rw,cpu,cpuacct\n");
        files.write("cgroup/cpuset.cpus", "0-3\n");
        files.write("cgroup/cpuset.mems", "0\n");
        break;
      case Cgroups::kOther:
        files.write("proc/self/mountinfo", "30 1 0:26 / " + root + " rw - cgroup2 cgroup2 rw\n");
        files.write("cgroup/cgroup.controllers", "memory\n");
        break;
    }
  }

  std::filesystem::path path(const std::string& name) const { return files.path() / name; }
  const agent::Roots& roots() const { return roots_; }

  /// Guest CPUs 0, 1, ... with these APIC ids.
  void cpus(const std::vector<int>& apic_ids) const {
    std::string info;
    for (std::size_t i = 0; i < apic_ids.size(); ++i) {
      const std::string number = std::to_string(i);
      files.write("sys/devices/system/cpu/cpu" + number + "/online", "1\n");
      info += "processor\t: " + number +
              "\nvendor_id\t: x\napicid\t\t: " + std::to_string(apic_ids[i]) +
              "\ninitial apicid\t: 99\n\n";
    }
    files.write("proc/cpuinfo", info);
  }

  /// A cgroup as the kernel makes one.
  void cgroup(const std::string& name) const {
    for (std::filesystem::path at = name; !at.empty(); at = at.parent_path()) {
      const std::string base = "cgroup/" + at.string();
      if (std::filesystem::exists(path(base + "/cpuset.cpus"))) continue;
      files.write(base + "/cpuset.cpus", "\n");
      files.write(base + "/cpuset.mems", "\n");
      files.write(base + "/cgroup.subtree_control", "\n");
      files.write(base + "/cgroup.procs", "");
      files.write(base + (cgroups_ == Cgroups::kV1 ? "/tasks" : "/cgroup.threads"), "");
    }
  }

  /// A process of one thread in a cgroup.
  void process(int pid, const std::string& cgroup_name, const std::string& comm) {
    const std::string line = std::to_string(pid) + '\n';
    append("cgroup/" + cgroup_name + "/cgroup.procs", line);
    append("cgroup/" + cgroup_name + (cgroups_ == Cgroups::kV1 ? "/tasks" : "/cgroup.threads"),
           line);
    const std::string base = "proc/" + std::to_string(pid);
    files.write(base + "/comm", comm + '\n');
    files.write(base + "/task/" + std::to_string(pid) + "/comm", comm + '\n');
    threads.cpus[pid] = policy::GuestCpuSet::range(0, 3);
  }

  std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    std::stringstream text;
    text << file.rdbuf();
    std::string out = text.str();
    while (out.ends_with('\n')) out.pop_back();
    return out;
  }

  TempDir files;
  FakeThreads threads;

 private:
  void append(const std::string& name, const std::string& line) const {
    std::ofstream(path(name), std::ios::app) << line;
  }

  Cgroups cgroups_;
  agent::Roots roots_{path("proc"), path("sys"), path("run")};
};

/// vCPUs by APIC id, of which these are some container's own.
inline policy::GuestSpec spec_of(int vcpus, const std::vector<std::uint64_t>& own,
                                 const std::string& container) {
  policy::GuestSpec spec;
  for (int i = 0; i < vcpus; ++i) {
    const auto id = static_cast<std::uint64_t>(i);
    const bool is_own = std::ranges::find(own, id) != own.end();
    spec.vcpus.push_back({.hardware_id = id,
                          .index = i,
                          .cpus = policy::CpuSet{i},
                          .nodes = policy::NodeSet{0},
                          .dedicated = is_own,
                          .common = !is_own});
  }
  spec.containers.push_back(
      {.id = container, .name = "app", .hardware_ids = own, .dedicated = true});
  return spec;
}

}  // namespace ka::tests
