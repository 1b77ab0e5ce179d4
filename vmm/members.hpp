// SPDX-License-Identifier: Apache-2.0
// The processes in a sandbox's cgroup, and which of them are the sandbox's.
#pragma once

#include <string>
#include <vector>

#include "base/trouble.hpp"
#include "vmm/facts/facts.hpp"
#include "vmm/kin.hpp"
#include "vmm/procfs/thread_list.hpp"
#include "vmm/threads.hpp"

namespace ka::vmm {

/// What decides it. References must outlive what uses them.
struct Membership {
  const Roots& roots;
  const Target& target;
  const Kin& kin;
  const Processes& known;  ///< that were the sandbox's when they were last seen
  const NeighbourOf& neighbour_of;
  base::Trouble& trouble;
};

class Members {
 public:
  /// Lists the cgroup.
  explicit Members(const Membership& by);

  /// All that are there, as far as a cgroup's are read; ascending.
  const std::vector<int>& pids() const { return pids_; }
  /// Whether the process is in the cgroup, and the sandbox's.
  bool has(const SeenProcess& process);
  /// Those for which that was true.
  const Processes& counted() const { return counted_; }
  /// The others, as sentences; also that not all were read.
  std::vector<std::string> foreign() const;

 private:
  void list();
  bool is_listed(const policy::ProcessId& process);
  std::string why_foreign(const policy::ProcessId& process,
                          const std::vector<policy::ProcessId>& line) const;
  bool is_kin(const policy::ProcessId& process) const;
  bool is_shown(const policy::ProcessId& process) const;
  void add_foreign(const SeenProcess& process, const std::string& why);

  Membership by_;
  std::vector<int> pids_;
  bool is_cut_ = false;  ///< not all of them are in pids_
  bool is_listed_again_ = false;
  Processes counted_;
  std::vector<std::string> foreign_;
  std::size_t unnamed_ = 0;  ///< foreign ones beyond those with a sentence
};

}  // namespace ka::vmm
