// SPDX-License-Identifier: Apache-2.0
// Containers on their vCPUs: placed by cpuset where the guest has cpusets, else thread by thread,
// and read again.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "guest-agent/agent/hierarchy.hpp"
#include "guest-agent/agent/kernel.hpp"
#include "guest-agent/agent/placed_record.hpp"
#include "policy/facts/guest.hpp"
#include "policy/plan/guest.hpp"

namespace ka::agent {

class Containers {
 public:
  /// Both must outlive it.
  Containers(const Roots& roots, const Calls& calls)
      : roots_(roots), calls_(calls), record_(roots.run / "kata-affinity/containers") {}

  using States = std::vector<policy::GuestContainerState>;

  /// Places every container that the host named, and all others on the common CPUs: first those
  /// that leave CPUs, then those that enter them. Returns what the kernel has
  /// then, by id; read_processes() adds the rest. `known`: what this returned the last time,
  /// nothing where CPUs or cgroups came or went or were written since. Of these, containers of
  /// which nothing else is requested are not checked again.
  States place(const Hierarchy& hierarchy, const Tree& tree, const States& known,
               const policy::GuestSpec& spec, const policy::plan::GuestPlacement& placement);

  /// Enters the first few processes of each container, and how many threads it has, for display:
  /// slow to read.
  void read_processes(const Hierarchy& hierarchy, const Tree& tree, States& states) const;

  /// Gives every container that was placed what it would have without us.
  void release(const Hierarchy& hierarchy, const policy::GuestCpuSet& online);

  /// What a cgroup was last given; absent where it is none of ours.
  std::optional<policy::GuestCpuSet> given(const std::filesystem::path& cgroup) const;

  /// Threads are placed one by one: those created later must be searched.
  bool by_threads() const { return by_threads_; }

 private:
  using Path = std::filesystem::path;
  struct Given {
    policy::GuestCpuSet cpus;
    std::vector<policy::GuestCpuSet> earlier;  ///< what some of its threads may have still
    bool is_alone = false;                     ///< no cgroup below it needs the same
    bool is_back = false;  ///< it was restored: `cpus` is all that was online then
  };

  policy::GuestContainerState place_one(const Hierarchy& hierarchy, const Tree& tree,
                                        const policy::GuestContainer& requested,
                                        const policy::GuestCpuSet& wanted);
  void adopt();
  void forget_gone();
  void save();
  void give_back(const Hierarchy& hierarchy, const Path& directory,
                 const policy::GuestCpuSet& online);
  bool lift(const Hierarchy& hierarchy, const Path& directory, bool requested);
  void narrow(const Hierarchy& hierarchy, const Path& directory, const policy::GuestCpuSet& cpus);
  int set_cpus(const Hierarchy& hierarchy, const Path& directory, const policy::GuestCpuSet& cpus);
  int place_threads(const Hierarchy& hierarchy, const Path& directory,
                    const policy::GuestCpuSet& cpus);
  void read_back(const Hierarchy& hierarchy, const Path& directory,
                 policy::GuestContainerState& state) const;
  policy::GuestProcess read_process(int pid) const;

  const Roots& roots_;
  const Calls& calls_;
  PlacedRecord record_;
  bool is_adopted_ = false;
  bool by_threads_ = false;
  bool ways_are_known_ = false;  ///< to cgroups in `given_`: nothing on it is in a cpuset's way
  std::map<Path, Given> given_;  ///< what each cgroup was last given
  std::map<Path, std::string> quotas_;  ///< of each cgroup whose quota was lifted: the one before
};

}  // namespace ka::agent
