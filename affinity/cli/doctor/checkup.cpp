// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/doctor/checkup.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "affinity/cli/kata/kata_config.hpp"
#include "affinity/cli/kata/profile.hpp"
#include "affinity/cli/node/node.hpp"
#include "affinity/config/config.hpp"
#include "affinity/config/entries.hpp"
#include "base/files.hpp"
#include "base/split.hpp"
#include "policy/plan/quiet.hpp"
#include "policy/plan/settings.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
using Level = Symptom::Level;
using Symptoms = std::vector<Symptom>;

Symptom examine_debugfs(const fs::path& root) {
  const fs::path debugfs = root / "sys/kernel/debug";
  if (is_there(debugfs / "kvm")) {
    return {"debugfs", Level::kGood, "KVM's debugfs maps threads to vCPUs", {}};
  }
  const auto names = base::list_directory(debugfs);
  if (names && !names->empty()) {
    return {"debugfs", Level::kNote, "debugfs is mounted but has no kvm directory",
            "load KVM's module of this processor", "modprobe kvm_intel || modprobe kvm_amd"};
  }
  if (base::has_part(first_line_of(root / "proc/cmdline"), ' ', "debugfs=off")) {
    return {"debugfs", Level::kBad,
            "the node was booted with debugfs=off: vCPU threads are identified by descriptors and "
            "names only",
            "boot without debugfs=off"};
  }
  return {"debugfs", Level::kBad,
          "debugfs is not mounted: vCPU threads are identified by descriptors and names only",
          "mount debugfs", "mount -t debugfs debugfs /sys/kernel/debug"};
}

/// kubelet does not start with a state that it cannot read, or that another policy wrote.
constexpr const char* kForgetState =
    "rm /var/lib/kubelet/cpu_manager_state && systemctl restart kubelet";

/// Of the policies none and static.
Symptom examine_policy(const fs::path& root, const std::string& policy) {
  const std::string text = "kubelet's CPU manager policy is \"" + policy + '"';
  if (policy == "static") {
    return {"kubelet", Level::kGood, "kubelet's CPU manager policy is static", {}};
  }
  if (runs(root, "dracpu")) {
    return {"kubelet", Level::kGood, text + ", as dra-driver-cpu needs it", {}};
  }
  return {"kubelet", Level::kNote, text + ": no container owns CPUs, unless mode is \"managed\"",
          "drain the node, set cpuManagerPolicy: static and reservedSystemCPUs in kubelet's "
          "configuration, remove its cpu_manager_state and restart it; or mode = \"managed\""};
}

Symptom examine_kubelet(const fs::path& root) {
  const auto state = read_kubelet_state(root);
  if (!state && state.error().code == base::ErrorCode::kInvalid) {
    return {"kubelet", Level::kBad, state.error().message,
            "drain the node, remove kubelet's cpu_manager_state and restart it", kForgetState};
  }
  if (state) return examine_policy(root, state->policy);
  return {"kubelet", Level::kNote,
          "no CPU manager state on this node: kubelet assigns no exclusive CPUs",
          "set cpuManagerPolicy: static and reservedSystemCPUs in kubelet's configuration and "
          "restart it"};
}

/// Errors that keep the daemon from starting or reloading.
void examine_settings(const fs::path& root, Symptoms& symptoms) {
  for (const fs::path& file : find_kata(root)) {
    const auto config = config::load_config(file);
    if (config || !read_merged(file)) continue;  // examine_kata() reports what is no TOML
    symptoms.push_back({"config", Level::kBad, config.error().message,
                        "correct that file, and reload the daemon"});
  }
}

bool has_rdt(const config::Config& config) {
  return std::ranges::any_of(config.classes.by_name,
                             [](const auto& entry) { return !entry.second.rdt.empty(); });
}

/// Of the node, or of one of its handlers.
template <typename Predicate>
bool any_settings(const config::Config& config, Predicate is_one) {
  return is_one(config.defaults) || std::ranges::any_of(config.by_handler, [&](const auto& entry) {
           return is_one(entry.second);
         });
}

bool wants_quiet(const config::Config& config) {
  return config.quiet.has_namespaces() ||
         any_settings(config, [&config](const policy::plan::Settings& settings) {
           return policy::plan::may_be_quiet(settings, config.quiet);
         });
}

bool allows_tuning(const config::Config& config) {
  return config.quiet.tuning_by_annotation &&
         any_settings(config, [](const policy::plan::Settings& settings) {
           return !settings.allow_tuning.empty();
         });
}

/// What needs kata-affinity-helper, and what becomes of it without.
struct HelperUse {
  std::string setting, without;
};

/// The first that applies; absent: nothing needs it.
std::optional<HelperUse> helper_use(const config::Config& config) {
  if (wants_quiet(config)) {
    return HelperUse{"grade is \"quiet\" or \"realtime\"", "sandboxes stay best-effort"};
  }
  if (has_rdt(config)) {
    return HelperUse{"classes have l3, l2 or mba", "these have no effect"};
  }
  if (allows_tuning(config)) {
    return HelperUse{"allow_crio_annotations lists annotations", "these have no effect"};
  }
  return std::nullopt;
}

void examine_helper(const fs::path& root, const config::Config& config, Symptoms& symptoms) {
  const auto use = helper_use(config);
  if (!use || is_there(root / config.helper_socket.relative_path())) return;
  symptoms.push_back({"helper", Level::kBad,
                      use->setting + ", and kata-affinity-helper's socket " +
                          config.helper_socket.string() + " does not exist: " + use->without,
                      "enable that socket", "systemctl enable --now kata-affinity-helper.socket"});
}

/// What a grade beyond best-effort lacks on this kernel.
void examine_grade(const fs::path& root, const config::Config& config, Symptoms& symptoms) {
  if (!wants_quiet(config)) return;
  const NodeFacts node = read_node(root);
  if (node.has_cpusets && !node.cgroup_v2) {
    symptoms.push_back({"grade", Level::kBad,
                        "the node has cgroup v1, where kata-affinity-helper cannot keep systemd's "
                        "units off CPUs: sandboxes stay best-effort",
                        "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)"});
  }
  if (config.quiet.partitions && !node.remote_partitions.value_or(true)) {
    symptoms.push_back({"grade", Level::kNote,
                        "the kernel has no remote cpuset partitions: AllowedCPUs of systemd's "
                        "units alone keeps services off quiet CPUs, and pods with grade "
                        "\"realtime\" are quiet only",
                        "boot Linux 6.7 or later; or quiet_partitions = false"});
  }
}

/// Exclusive containers on a node without a profile are degraded: nothing isolates them.
Symptom examine_profile(const fs::path& root) {
  const auto profile = profile_of_node(root);
  if (profile == Profile::kIsolated) {
    return {"profile", Level::kGood, "the profile isolates exclusive containers", {}};
  }
  const char* text =
      !profile ? "no profile is set, exclusive containers are degraded: other threads of their VM "
                 "run on their CPUs"
      : profile == Profile::kWatch
          ? "profile watch: nothing is written, exclusive containers are degraded"
          : "profile default, exclusive containers are degraded: vCPUs are pinned, other threads "
            "of their VM run on the same CPUs";
  return {"profile", Level::kNote, text,
          "isolate exclusive containers; `kata-affinityctl setup` shows first what it writes",
          kIsolateCommand};
}

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string_view level_name(Symptom::Level level) {
  switch (level) {
    case Level::kGood:
      return "good";
    case Level::kNote:
      return "note";
    case Level::kBad:
      break;
  }
  return "bad";
}

std::vector<Symptom> examine(const fs::path& root) {
  Symptoms symptoms{examine_runtime(root)};
  std::ranges::move(examine_kata(root), std::back_inserter(symptoms));
  examine_settings(root, symptoms);
  const auto config = config::load_config(std::nullopt, root);
  if (config) examine_helper(root, *config, symptoms);
  if (config) examine_grade(root, *config, symptoms);
  if (!find_kata(root).empty()) {
    symptoms.push_back(examine_profile(root));
    std::ranges::move(examine_killed_pods(root), std::back_inserter(symptoms));
  }
  symptoms.push_back(examine_debugfs(root));
  symptoms.push_back(examine_kubelet(root));
  std::ranges::move(examine_machine(root, config && wants_quiet(*config)),
                    std::back_inserter(symptoms));
  std::ranges::move(examine_agents(root), std::back_inserter(symptoms));
  std::ranges::move(examine_rights(root), std::back_inserter(symptoms));
  return symptoms;
}

}  // namespace ka::cli
