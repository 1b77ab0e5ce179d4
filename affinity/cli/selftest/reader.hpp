// SPDX-License-Identifier: Apache-2.0
// Where the threads of pods may run, by the kernel: masks, /proc, KVM's debugfs, cgroups and
// containerd's task directories. The daemon is not asked, and none of its code identifies threads
// here, so that a mistake of its own does not hide itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli::selftest {

/// The affinity mask of a thread; an error where it has ended.
using ReadMask = std::function<base::Result<policy::CpuSet>(int tid)>;

/// sched_getaffinity(2).
base::Result<policy::CpuSet> read_mask(int tid);

struct ThreadSeen {
  int tid = 0;
  std::string part;  ///< "vCPU", "VMM", "virtiofsd", "shim", "helper", "container NAME"
  policy::CpuSet cpus;
  std::optional<std::uint64_t> apic_id;  ///< of a vCPU: KVM's id of it
};

/// What a thread has had of CPUs since it started: /proc/<tid>/schedstat (proc_pid_schedstat() in
/// fs/proc/base.c).
struct ThreadTime {
  std::chrono::nanoseconds ran{};
  std::chrono::nanoseconds waited{};  ///< runnable without a CPU
};

/// Of one pod, the threads of its VM; of all others, those of their VMs and containers.
struct Reading {
  std::string sandbox;  ///< id; empty: containerd does not run the pod
  /// Ids of the pod's containers that containerd has, by name.
  std::map<std::string, std::string> containers;
  std::vector<ThreadSeen> own;
  std::vector<ThreadSeen> others;
  int unread = 0;  ///< processes and threads that run and could not be read
};

class Reader {
 public:
  /// `root`: of the node's file system.
  Reader(std::filesystem::path root, ReadMask read_mask);

  /// Reads every process of the node.
  Reading read(const std::string& pod_uid);

  /// An error where the thread has ended.
  base::Result<ThreadTime> time_of(int tid) const;

  /// Whether containerd has a task of the pod.
  bool has_tasks(const std::string& pod_uid);

  /// Whether a process carries the id of this sandbox in its command line.
  bool has_processes(const std::string& sandbox) const;

 private:
  /// A task of containerd: a pod's sandbox, or one of its containers.
  struct Task {
    std::string sandbox;
    std::string pod_uid;
    std::string container;  ///< empty: the sandbox itself
    bool is_vm = false;
  };
  struct Membership {
    const Task* task = nullptr;
    std::string part;
  };
  /// KVM's ids of vCPUs by thread, by the thread that created the VM.
  using Vcpus = std::map<int, std::map<int, std::uint64_t>>;

  void refresh_tasks();
  base::Result<Task> read_task(const std::filesystem::path& directory) const;
  const Task* find_task(const std::string& text) const;
  const Task* sandbox_of_pod(const std::string& cgroup) const;
  Membership member(int pid) const;
  Membership member_of_vm(const Task& task, const std::vector<std::string>& words) const;
  Vcpus read_vcpus() const;
  void add_threads(int pid, const Membership& member, const Vcpus& vcpus,
                   std::vector<ThreadSeen>& threads, int& unread) const;

  std::filesystem::path root_;
  ReadMask read_mask_;
  base::ProcFs procfs_;
  std::map<std::string, Task> tasks_;  ///< by id
};

}  // namespace ka::cli::selftest
