// SPDX-License-Identifier: Apache-2.0
// The kernel of the model's node: VMs as files and masks, what may go wrong with looking at them,
// and a line that is told of none of it but through events and system calls.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/property/model/real_kernel.hpp"
#include "tests/property/model/world.hpp"
#include "tests/unit/line/scene.hpp"

namespace ka::model {

/// The daemon is killed: thrown out of a system call that it makes.
struct Killed {};

struct Setup {
  line::Options options;
  Assigner assigner = Assigner::kFile;
  bool has_nri = true, has_proxy = true;
  bool has_libvirt = false;  ///< some pods are its domains
  bool forgets = false;      ///< before Linux 6.2 a write to a cpuset makes it forget own masks
  bool smt = false;
  /// Where the kernel that runs the test has the same VMs; empty: nowhere.
  std::filesystem::path cgroup;
};

/// A thread's number, the hundreds of which are its VMM's.
constexpr int vmm_of(int tid) { return tid / 100 * 100; }

class Kernel : public tests::LineScene {
 public:
  explicit Kernel(const Setup& setup);

  void boot(Pod& pod);
  /// Its VMM ends; `reused`: a program that is no VMM gets its number.
  void end(const Pod& pod, bool reused);
  void plug_one(const Pod& pod);
  void unplug_one(const Pod& pod);
  /// Kata writes what the containers may use; false: there is nothing to write.
  bool confine(const Pod& pod);
  /// The daemon has written a pod's cgroup.
  void mirror_cgroup(const std::string& pod);
  /// As it was written last.
  policy::CpuSet cgroup(const std::string& pod) const { return cpusets.configured("pods/" + pod); }
  std::string directory_of(const std::string& pod) const {
    return (node.cgroup() / "pods" / pod).string();
  }
  void set_online(const policy::CpuSet& online);
  /// Somebody sets a mask; it is refused where the cgroup allows none of it.
  void set_mask(int tid, const policy::CpuSet& mask);

  /// The daemon has set a mask.
  void mirror_write(int tid);
  /// What the kernel that runs the test makes of all that, where it is another thing; empty: the
  /// same.
  std::string difference() const;

  void fail_calls(int tid, int number);
  void hide(int pid);
  /// Everything can be read and written again.
  void mend();

  std::vector<int> threads_of(int pid) const;
  std::vector<int> vcpus_of(int pid) const { return vms_.at(pid).vcpus; }
  bool is_alive(int pid) const { return vms_.contains(pid); }
  /// Whether there may be one vCPU more, and one less. (The files of a VM that is hidden stay as
  /// they are.)
  bool may_plug(int pid) const;
  bool may_unplug(int pid) const;
  policy::CpuSet allowed(int tid) const;
  const policy::CpuSet& online() const { return online_; }
  bool is_seen() const { return hidden_.empty() && faulty_.empty(); }
  /// Numbers of programs that are nobody's VM.
  const std::set<int>& strangers() const { return strangers_; }
  std::map<int, policy::CpuSet> masks() const;

 private:
  struct Vm {
    std::string pod;
    std::vector<int> vcpus;  ///< thread ids by index
    int plugged = 0;         ///< vCPUs, so far
    policy::CpuSet allowed;
  };

  void bury(int pid, int tid);
  void update_allowed();
  std::filesystem::path folder(int pid) const { return node.proc() / std::to_string(pid); }

  bool forgets_, smt_;
  int next_pid_ = 100;
  policy::CpuSet online_;
  std::map<int, Vm> vms_;  ///< by pid
  std::set<int> strangers_, hidden_, faulty_;
  std::unique_ptr<RealKernel> real_;  ///< null: the masks are numbers alone
  std::string refused_;               ///< what it did not do
};

}  // namespace ka::model
