// SPDX-License-Identifier: Apache-2.0
// The checks of `doctor`: how the programs around kata-affinity are configured on this node.
#pragma once

#include <boost/json/fwd.hpp>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ka::cli {

struct Symptom {
  enum class Level {
    kGood,
    kNote,  ///< works, and could be better
    kBad,   ///< isolation fails
  };

  std::string check;  ///< "nri", "kata", "debugfs", "kubelet", "cgroup", "irq", "vcpus", ...
  Level level = Level::kGood;
  std::string text;
  std::string advice;  ///< what to do about it; empty where all is well
  /// The commands for that, if one or two suffice.
  std::string command = {};
};

/// "good", "note", "bad", as JSON has it; the text has OK, WARN, FAIL.
std::string_view level_name(Symptom::Level level);

/// "node", "kubelet", "runtime", "Kata" or "sandboxes".
std::string_view group_of(std::string_view check);

/// By group, with a summary and the commands that fix the findings.
std::string describe_checkup(const std::vector<Symptom>& symptoms);
/// The same text with OK, WARN and FAIL in colour.
std::string coloured(const std::string& text);
/// The document of `doctor --json`.
boost::json::object to_json(const std::vector<Symptom>& symptoms);

/// How the container runtime reports containers: NRI, or the shim proxy.
Symptom examine_runtime(const std::filesystem::path& root);

/// How Kata is configured; never nothing.
std::vector<Symptom> examine_kata(const std::filesystem::path& root);

/// Problems of the kernel's settings and irqbalance; empty: none. `are_pods_quiet`: some are, or
/// may be, by the configuration.
std::vector<Symptom> examine_machine(const std::filesystem::path& root, bool are_pods_quiet);

/// Other programs on the node that move threads or assign CPUs; empty: none.
std::vector<Symptom> examine_agents(const std::filesystem::path& root);

/// What a daemon that runs cannot see for want of capabilities; empty: it has all, or none runs.
std::vector<Symptom> examine_rights(const std::filesystem::path& root);

/// Whether there is a file or a directory; what cannot be looked at is not there.
bool is_there(const std::filesystem::path& path);

/// The directories in /proc of the processes with this comm.
std::vector<std::filesystem::path> processes_of(const std::filesystem::path& root,
                                                std::string_view program);

/// Whether a process has this comm.
bool runs(const std::filesystem::path& root, std::string_view program);

/// All of the above. Reads files below `root` and changes nothing.
std::vector<Symptom> examine(const std::filesystem::path& root);

/// What is wrong with the sandboxes that run: too few vCPUs, memory on other nodes, CFS quotas.
/// `list` is the response to GET /v1/sandboxes; quotas are read below `root`.
std::vector<Symptom> examine_sandboxes(const boost::json::value& list,
                                       const std::filesystem::path& root);

/// Whether the pod of a VMM has too little memory for it: its limit is below the guest's memory, or
/// the kernel has killed processes of it. `head` names the sandbox.
void examine_memory_limit(const std::filesystem::path& root, int vmm, const std::string& head,
                          std::vector<Symptom>& symptoms);

/// Pods without a process of which the kernel has killed some for want of memory: VMs that are
/// killed at once are seen nowhere else.
std::vector<Symptom> examine_killed_pods(const std::filesystem::path& root);

/// That of the daemon's response to GET /v1/sandboxes; where it cannot be asked, a note that says
/// so, with the command that starts it for one who may.
std::vector<Symptom> examine_daemon(const base::Result<boost::json::object>& sandboxes,
                                    const std::filesystem::path& root, bool is_root);

/// Whether the caller may read what the checks read; empty: it is root.
std::vector<Symptom> examine_caller(bool is_root);

}  // namespace ka::cli
