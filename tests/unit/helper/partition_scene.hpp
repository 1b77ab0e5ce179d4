// SPDX-License-Identifier: Apache-2.0
// Two VMMs in a tree of cgroups, and a keeper of partitions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "affinity/helper/partition_keeper.hpp"
#include "tests/fake_cgroup_tree.hpp"
#include "tests/fake_kernel_threads.hpp"
#include "tests/fake_node.hpp"
#include "tests/fake_scheduling.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text_log.hpp"

namespace ka::tests {

inline constexpr const char* kOne = "/kubepods/pod1/one";
inline constexpr const char* kTwo = "/kubepods/pod2/two";
inline constexpr const char* kOfOne = "/kubepods/pod1/one/kata-affinity";

/// Two VMMs of three threads each, 100 to 102 and 200 to 202, in cgroups that allow the shared
/// pool, 0-1, too.
struct TwoVmms {
  TwoVmms() {
    for (const char* cgroup : {"/kubepods", "/kubepods/pod1", "/kubepods/pod2"}) tree.add(cgroup);
    boot(100, kOne, {0, 1, 2, 3});
    boot(200, kTwo, {0, 1, 4, 5});
  }

  void boot(int pid, const char* cgroup, const policy::CpuSet& cpus) {
    node.process(pid, 1, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
    tree.add(cgroup, cpus);
    tree.put(pid, cgroup);
    for (const int tid : {pid + 1, pid + 2}) {
      node.thread(pid, tid, "CPU " + std::to_string(tid - pid) + "/KVM");
      tree.put(tid, cgroup);
    }
    before = tree.text();
  }
  policy::ThreadKey key(int tid) const {
    const int pid = tid / 100 * 100;
    return {pid, tid, base::ProcFs(node.proc()).stat(pid, tid)->start_time};
  }
  policy::Partition of(int pid, const policy::CpuSet& cpus, int priority = 0) const {
    return {key(pid), cpus, {key(pid + 1), key(pid + 2)}, priority, false};
  }
  std::string threads(int pid) const {
    return tree.where(pid) + ' ' + tree.where(pid + 1) + ' ' + tree.where(pid + 2);
  }

  FakeNode node;
  FakeCgroupTree tree;
  FakeScheduling scheduling;
  FakeKernelThreads kernel_threads;
  std::string before;
  TempDir dir;
  std::string lines;
  log::Log logger = text_log(log::Level::kInfo, lines);
};

struct PartitionScene : TwoVmms {
  PartitionScene() { restart(); }

  helper::RecordFile<helper::PartitionRecords> file() const { return {dir.path(), "boot"}; }
  /// A helper that was killed and started again.
  void restart() {
    keeper.emplace(tree, scheduling, helper::VmmThreads(node.proc()), kernel_threads, file(),
                   logger);
    keeper->adopt();
  }
  void keep(std::vector<policy::Partition> wanted) { keeper->keep(std::move(wanted)); }
  std::string problem(std::size_t i = 0) const { return keeper->state().partitions.at(i).problem; }
  /// Priorities of the VMM's threads.
  std::string priorities(int pid) const {
    std::string text;
    for (int i = 0; i < 3; ++i) text += std::to_string(scheduling.of(pid + i).priority);
    return text;
  }
  bool has_file() const { return std::filesystem::exists(file().path()); }
  bool is_as_before() const {
    return tree.text() == before && threads(100) == std::string(kOne) + ' ' + kOne + ' ' + kOne &&
           !has_file() && !keeper->holds();
  }

  std::optional<helper::PartitionKeeper> keeper;
};

}  // namespace ka::tests
