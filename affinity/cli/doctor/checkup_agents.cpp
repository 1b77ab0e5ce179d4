// SPDX-License-Identifier: Apache-2.0
// Checks of `doctor`: other programs that write affinity masks or cpusets.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "affinity/cli/doctor/checkup.hpp"
#include "affinity/cli/kata/kata_config.hpp"
#include "affinity/cli/node/node.hpp"
#include "affinity/config/config.hpp"
#include "affinity/host/capabilities.hpp"
#include "affinity/host/cpu_plugins.hpp"
#include "affinity/host/movers.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "base/split.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
using Level = Symptom::Level;
using Symptoms = std::vector<Symptom>;

/// A program by its comm, of which the kernel keeps 15 characters.
struct Agent {
  std::string_view comm;
  Level level;
  std::string_view text;
  std::string_view advice;
  std::string_view command;
};

constexpr auto kAgents = std::to_array<Agent>({
    {host::kNumad, Level::kBad,
     "numad is running and moves VMMs between NUMA nodes, and their masks", "disable numad",
     "systemctl disable --now numad"},
    {host::kNriResourcePolicy, Level::kBad,
     "an NRI resource policy (balloons or topology-aware) is running: it assigns CPUs beside "
     "kubelet, and its unsolicited updates can deadlock a container runtime with NRI before 0.12.1",
     "run either its CPU allocation or kubelet's static policy", ""},
});

void examine_running(const fs::path& root, Symptoms& symptoms) {
  for (const Agent& agent : kAgents) {
    if (!runs(root, agent.comm)) continue;
    symptoms.push_back({"agents", agent.level, std::string(agent.text), std::string(agent.advice),
                        std::string(agent.command)});
  }
}

/// The configuration with mode = "managed", if one of the node has it.
std::optional<config::Config> managed_config(const fs::path& root) {
  for (const fs::path& file : find_kata(root)) {
    auto config = config::load_config(file);
    if (config && config->mode == config::Mode::kManaged) return *std::move(config);
  }
  return std::nullopt;
}

/// Plugins beside which the daemon does not start in managed mode.
void examine_plugins(const fs::path& root, const config::Config& managed, Symptoms& symptoms) {
  const auto others = host::running_cpu_plugins(base::ProcFs(root / "proc"), managed.nri_socket);
  if (others.empty()) return;
  symptoms.push_back({"agents", Level::kBad,
                      others + " gives containers their CPUs beside mode = \"managed\", and the "
                               "daemon does not start",
                      "remove it from this node, or set mode = \"follow\""});
}

/// dra-driver-cpu, whose claims are followed: two must not give out one node's CPUs.
void examine_claims(const fs::path& root, Symptoms& symptoms) {
  if (!runs(root, host::kDraDriver)) return;
  const auto kubelet = read_kubelet_state(root);
  if (!kubelet || kubelet->policy != "static") {
    symptoms.push_back({"agents",
                        Level::kGood,
                        "dra-driver-cpu gives out this node's CPUs: its claims are followed",
                        {}});
    return;
  }
  symptoms.push_back(
      {"agents", Level::kBad,
       "dra-driver-cpu is running beside kubelet's static policy: both give out "
       "the same CPUs",
       "drain the node and set cpuManagerPolicy: none in kubelet's configuration (remove its "
       "cpu_manager_state, restart it), or remove the driver"});
}

/// Its [scheduler] leaves VMs alone: tuned matches the names of processes with ps_blacklist.
bool spares_vms(const fs::path& root, const std::string& profile) {
  for (const char* place : {"etc/tuned", "usr/lib/tuned", "usr/lib/tuned/profiles"}) {
    const auto text = base::read_regular_file(root / place / profile / "tuned.conf");
    if (!text) continue;
    return std::ranges::any_of(base::split(*text, '\n'), [](std::string_view line) {
      const auto names = [line](std::string_view part) {
        return line.find(part) != std::string_view::npos;
      };
      return line.starts_with("ps_blacklist") && names("virtiofsd") &&
             (names("qemu") || names("cloud-hyper"));
    });
  }
  return false;
}

/// Profiles whose [scheduler] moves every thread off the isolated cores, but for a list of names.
void examine_tuned(const fs::path& root, Symptoms& symptoms) {
  const std::string profiles = first_line_of(root / "etc/tuned/active_profile");
  const bool moves = profiles.find("cpu-partitioning") != std::string::npos ||
                     profiles.find("realtime") != std::string::npos;
  if (!moves || !runs(root, host::kTuned) || spares_vms(root, profiles)) return;
  symptoms.push_back({"agents", Level::kNote,
                      "tuned is running with the profile " + profiles +
                          ", which moves threads off its isolated cores",
                      "set ps_blacklist=.*qemu.*;.*cloud-hyper.*;.*virtiofsd.* in [scheduler] of a "
                      "profile in /etc/tuned that includes it, or choose another profile"});
}

/// Plugins that the container runtime itself starts.
void examine_nri_plugins(const fs::path& root, Symptoms& symptoms) {
  const auto names = base::list_directory(root / "opt/nri/plugins");
  if (!names || names->empty()) return;
  std::string list;
  for (const std::string& name : *names) list += (list.empty() ? "" : ", ") + name;
  symptoms.push_back({"agents", Level::kNote,
                      "the container runtime starts other NRI plugins: " + list +
                          "; one that changes cpusets competes with kubelet",
                      "remove from /opt/nri/plugins what changes cpusets"});
}

}  // namespace

std::vector<fs::path> processes_of(const fs::path& root, std::string_view program) {
  std::vector<fs::path> processes;
  for (const int pid : base::list_numbers(root / "proc").value_or(std::vector<int>{})) {
    const fs::path process = root / "proc" / std::to_string(pid);
    if (first_line_of(process / "comm") == program) processes.push_back(process);
  }
  return processes;
}

bool runs(const fs::path& root, std::string_view program) {
  return !processes_of(root, program).empty();
}

std::vector<Symptom> examine_rights(const fs::path& root) {
  Symptoms symptoms;
  for (const fs::path& process : processes_of(root, "kata-affinityd")) {
    const auto unseen = host::unseen_without_capabilities(process);
    if (!unseen || unseen->empty()) continue;
    symptoms.push_back({"daemon", Level::kBad,
                        "kata-affinityd (pid " + process.filename().string() +
                            ") cannot see VMMs completely: " + *unseen,
                        host::kCapabilityRemedy});
  }
  return symptoms;
}

Symptoms examine_agents(const fs::path& root) {
  Symptoms symptoms;
  examine_running(root, symptoms);
  if (const auto managed = managed_config(root)) {
    examine_plugins(root, *managed, symptoms);
  } else {
    examine_claims(root, symptoms);
  }
  examine_tuned(root, symptoms);
  examine_nri_plugins(root, symptoms);
  return symptoms;
}

}  // namespace ka::cli
