// SPDX-License-Identifier: Apache-2.0
// Checks of `doctor`: the kernel, and programs that move threads and interrupts between CPUs.
#include <algorithm>
#include <optional>
#include <sstream>

#include "affinity/cli/doctor/checkup.hpp"
#include "affinity/cli/node/node.hpp"
#include "affinity/host/movers.hpp"
#include "affinity/messages/terms.hpp"
#include "base/files.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
using Level = Symptom::Level;
using Symptoms = std::vector<Symptom>;

/// Without the cpuset controller kubelet's decisions reach no cgroup, and none can be read.
void examine_cpusets(const NodeFacts& node, Symptoms& symptoms) {
  if (node.has_cpusets) return;
  symptoms.push_back({"cgroup", Level::kBad,
                      "the kernel has no cpuset controller: containers' CPUs cannot be followed",
                      "boot without cgroup_disable=cpuset, and mount cgroups at /sys/fs/cgroup"});
}

void examine_isolation(const fs::path& root, Symptoms& symptoms) {
  const std::string isolated = first_line_of(root / "sys/devices/system/cpu/isolated");
  if (isolated.empty()) return;
  symptoms.push_back({"isolcpus", Level::kNote,
                      "CPUs " + isolated +
                          " are isolated (isolcpus): the scheduler does not balance load there, "
                          "so floating threads stay on one of them",
                      "reserve them for exclusive containers, or boot without isolcpus"});
}

/// The tick stops on a CPU while one thread wants it: floating threads in the pool share theirs.
void examine_nohz(const fs::path& root, Symptoms& symptoms) {
  const auto quiet =
      policy::parse_list<policy::CpuTag>(first_line_of(root / "sys/devices/system/cpu/nohz_full"));
  const NodeFacts node = read_node(root);
  const auto shared = node.shared_pool & quiet.value_or(policy::CpuSet{});
  if (!node.assigns_cpus() || shared.empty()) return;
  symptoms.push_back({"nohz", Level::kNote,
                      "nohz_full covers " + messages::cpus_text(shared) +
                          " of the shared pool: threads that share a CPU keep its tick, and "
                          "kernel housekeeping avoids it",
                      "list only CPUs that containers may own in nohz_full, and put the others "
                      "into kubelet's reservedSystemCPUs"});
}

/// What containers own now, by kubelet's state.
policy::CpuSet owned_cpus(const fs::path& root) {
  policy::CpuSet owned;
  const auto state = read_kubelet_state(root);
  if (!state || !state->seen.claims) return owned;
  for (const auto& claim : *state->seen.claims) owned |= claim.cpus;
  return owned;
}

/// CPUs of kubelet's state, owned or not.
policy::CpuSet known_to_kubelet(const fs::path& root) {
  const auto state = read_kubelet_state(root);
  if (!state || state->policy != "static") return {};
  return owned_cpus(root) | state->seen.shared_pool.value_or(policy::CpuSet{});
}

/// kubelet reads the topology once, and rejects a state of another one at its next start.
void examine_smt(const fs::path& root, Symptoms& symptoms) {
  const std::string control = first_line_of(root / "sys/devices/system/cpu/smt/control");
  if (control != "off" && control != "forceoff") return;
  const auto online =
      policy::parse_list<policy::CpuTag>(first_line_of(root / "sys/devices/system/cpu/online"));
  const policy::CpuSet gone = known_to_kubelet(root) - online.value_or(policy::CpuSet{});
  if (!online || gone.empty()) return;
  symptoms.push_back({"smt", Level::kBad,
                      "SMT is off, and kubelet's state still has " + messages::cpus_text(gone) +
                          ", which " + (gone.size() == 1 ? "is" : "are") + " offline",
                      "drain the node, remove kubelet's cpu_manager_state and restart it",
                      "rm /var/lib/kubelet/cpu_manager_state && systemctl restart kubelet"});
}

/// The last value of a variable in a file of shell variables; absent: not set.
std::optional<std::string> variable(const std::string& text, const std::string& name) {
  std::optional<std::string> value;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name + '=')) continue;
    value = line.substr(name.size() + 1);
    std::erase_if(*value, [](char c) { return c == '"' || c == '\'' || c == ' '; });
  }
  return value;
}

/// The CPUs that irqbalance is configured to spare (irqbalance(1)); absent where there are none, or
/// the setting is invalid.
std::optional<policy::CpuSet> banned_cpus(const std::string& settings) {
  auto set = policy::parse_list<policy::CpuTag>("");
  if (const auto list = variable(settings, "IRQBALANCE_BANNED_CPULIST")) {
    set = policy::parse_list<policy::CpuTag>(*list);
  } else if (const auto mask = variable(settings, "IRQBALANCE_BANNED_CPUS")) {
    set = policy::parse_mask<policy::CpuTag>(*mask);
  }
  if (!set || set->empty()) return std::nullopt;
  return *set;
}

/// irqbalance spares the configured CPUs and isolated ones, and no others but those that the helper
/// bans: the CPUs of quiet pods.
void examine_irqbalance(const fs::path& root, bool are_pods_quiet, Symptoms& symptoms) {
  if (!runs(root, host::kIrqbalance)) return;
  const auto banned =
      banned_cpus(base::read_regular_file(root / "etc/default/irqbalance").value_or(""));
  const auto isolated =
      policy::parse_list<policy::CpuTag>(first_line_of(root / "sys/devices/system/cpu/isolated"))
          .value_or(policy::CpuSet{});
  const auto owned = owned_cpus(root);
  const auto open = owned - banned.value_or(policy::CpuSet{}) - isolated;
  if (open.empty() && (banned || !owned.empty())) return;
  const std::string where =
      open.empty() ? "exclusive CPUs" : messages::cpus_text(open) + ", which containers own";
  symptoms.push_back({"irq", are_pods_quiet ? Level::kNote : Level::kBad,
                      "irqbalance is running and may move interrupts onto " + where +
                          (are_pods_quiet ? ", unless their pods are quiet" : ""),
                      "set IRQBALANCE_BANNED_CPULIST in /etc/default/irqbalance to the CPUs that "
                      "containers may own, or disable irqbalance",
                      "systemctl disable --now irqbalance"});
}

}  // namespace

std::vector<Symptom> examine_machine(const fs::path& root, bool are_pods_quiet) {
  Symptoms symptoms;
  examine_cpusets(read_node(root), symptoms);
  examine_isolation(root, symptoms);
  examine_nohz(root, symptoms);
  examine_smt(root, symptoms);
  examine_irqbalance(root, are_pods_quiet, symptoms);
  return symptoms;
}

}  // namespace ka::cli
