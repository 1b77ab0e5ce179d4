// SPDX-License-Identifier: Apache-2.0
#include "vmm/members.hpp"

#include <algorithm>
#include <utility>

#include "vmm/procfs/relatives.hpp"

namespace ka::vmm {
namespace {

constexpr std::size_t kMostNamedForeign = 8;

constexpr const char* kCut = "its cgroup has more than 4096 processes, or more than 256 cgroups";

}  // namespace

Members::Members(const Membership& by) : by_(by) { list(); }

/// The root cgroup has every process, so it is no sandbox's own.
void Members::list() {
  const std::string& cgroup = by_.target.cgroup;
  if (cgroup.empty() || cgroup == by_.roots.cgroup) return;
  auto listed = cgroup_members(cgroup, by_.trouble);
  pids_ = std::move(listed.pids);
  is_cut_ = listed.is_cut;
  if (is_cut_) by_.trouble.record_left_out(kCut);
}

bool Members::has(const SeenProcess& process) {
  if (!is_listed(process.id())) return false;
  const auto line = ancestry(by_.roots.proc, process.pid);
  by_.trouble.record(line);
  if (!line) return false;
  const std::string reason = why_foreign(process.id(), *line);
  if (reason.empty()) {
    counted_.emplace(process.pid, process.start_time);
  } else {
    add_foreign(process, reason);
  }
  return reason.empty();
}

/// The nearest of its ancestors that is anybody's decides whose it is.
std::string Members::why_foreign(const policy::ProcessId& process,
                                 const std::vector<policy::ProcessId>& line) const {
  for (const policy::ProcessId& one : line) {
    if (is_kin(one)) return {};
    const std::string neighbour = by_.neighbour_of(one);
    if (!neighbour.empty()) return "belongs to sandbox \"" + neighbour + '"';
  }
  const bool is_own = !by_.target.is_cgroup_named || is_shown(process);
  return is_own ? "" : "was not started by the VMM or its shim";
}

/// It may have the pid of a member that ended since the members were listed.
bool Members::is_listed(const policy::ProcessId& process) {
  if (!std::ranges::binary_search(pids_, process.pid)) return false;
  if (has_process(by_.known, process)) return true;
  if (!std::exchange(is_listed_again_, true)) list();
  return std::ranges::binary_search(pids_, process.pid);
}

bool Members::is_kin(const policy::ProcessId& process) const {
  return process == by_.target.vmm || by_.kin.has(process);
}

/// A child of the VMM may have left it since.
bool Members::is_shown(const policy::ProcessId& process) const {
  return by_.kin.is_connected(process) || has_process(by_.known, process);
}

void Members::add_foreign(const SeenProcess& process, const std::string& why) {
  if (foreign_.size() == kMostNamedForeign) {
    ++unnamed_;
    return;
  }
  foreign_.push_back("process " + std::to_string(process.pid) + " \"" + process.comm +
                     "\" in its cgroup " + why);
}

std::vector<std::string> Members::foreign() const {
  std::vector<std::string> sentences = foreign_;
  if (unnamed_ > 0) {
    sentences.push_back(std::to_string(unnamed_) +
                        " more processes in its cgroup are not the sandbox's");
  }
  if (is_cut_) sentences.emplace_back(kCut);
  return sentences;
}

}  // namespace ka::vmm
