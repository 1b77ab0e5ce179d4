#include "affinity/cli/checkup.hpp"

#include <boost/json/value.hpp>

#include "affinity/base/files.hpp"
#include "affinity/cli/daemon.hpp"
#include "affinity/cli/kata_config.hpp"
#include "affinity/config/entries.hpp"
#include "affinity/words/json.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
using Level = Symptom::Level;
using Symptoms = std::vector<Symptom>;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

constexpr const char* kTurnNriOn =
    "set disable = false in [plugins.\"io.containerd.nri.v1.nri\"] of containerd's config.toml and "
    "restart containerd; without NRI only Kata's folders and cgroups are followed";

Symptom examine_nri(const fs::path& root) {
  if (is_there(root / "run/nri/nri.sock") || is_there(root / "var/run/nri/nri.sock")) {
    return {"nri", Level::kGood, "the container runtime offers NRI at /var/run/nri/nri.sock", {}};
  }
  const fs::path file = root / "etc/containerd/config.toml";
  const auto text = base::read_file(file);
  if (!text) {
    return {"nri", Level::kBad,
            "there is no NRI socket, and no /etc/containerd/config.toml that would turn NRI on",
            kTurnNriOn};
  }
  const auto entries = config::parse_whole(*text, file);
  if (!entries)
    return {"nri", Level::kBad, entries.error().message, "mend containerd's config.toml"};
  const auto disabled = flag_at(*entries, {"plugins", "io.containerd.nri.v1.nri", "disable"});
  if (disabled == false) {
    return {"nri", Level::kBad, "containerd is told to offer NRI, and its socket is not there",
            "start or restart containerd; before 1.7 it has no NRI"};
  }
  return {"nri", Level::kBad,
          disabled ? "NRI is turned off in /etc/containerd/config.toml"
                   : "there is no NRI socket; before 2.0 containerd has NRI off unless it is told",
          kTurnNriOn};
}

/// The two runtimes have different defaults.
bool is_rust(const fs::path& file) { return file.native().find("runtime-rs") != std::string::npos; }

void examine_kata_file(const fs::path& file, Symptoms& symptoms) {
  const auto add = [&](Level level, const std::string& text, const std::string& advice) {
    symptoms.push_back({"kata", level, file.native() + ": " + text, advice});
  };
  const auto entries = read_merged(file);
  if (!entries) return add(Level::kBad, entries.error().message, "mend that file");
  if (flag_at(*entries, {"runtime", "enable_vcpus_pinning"}).value_or(false)) {
    add(Level::kBad,
        "enable_vcpus_pinning is on: Kata pins vCPUs too, and undoes what is done here",
        "set enable_vcpus_pinning = false in [runtime], best in a file in config.d beside it");
  }
  const bool cgroup_only =
      flag_at(*entries, {"runtime", "sandbox_cgroup_only"}).value_or(is_rust(file));
  if (cgroup_only) {
    add(Level::kNote,
        "sandbox_cgroup_only is on: shim, VMM and virtiofsd live inside the containers' cpuset, "
        "and so does housekeeping",
        {});
  } else {
    add(Level::kNote,
        "sandbox_cgroup_only is off: with cgroup v2 the whole VMM is in the containers' cpuset, "
        "shim and virtiofsd are not",
        "sandbox_cgroup_only = true makes it the same on every node");
  }
  if (!flag_at(*entries, {"runtime", "static_sandbox_resource_mgmt"}).value_or(is_rust(file))) {
    add(Level::kNote,
        "static_sandbox_resource_mgmt is off: vCPUs are plugged while containers start, and are "
        "placed only after that",
        "set static_sandbox_resource_mgmt = true in [runtime]");
  }
}

void examine_kata(const fs::path& root, Symptoms& symptoms) {
  const std::size_t before = symptoms.size();
  for (const fs::path& file : find_kata(root)) examine_kata_file(file, symptoms);
  if (symptoms.size() != before) return;
  symptoms.push_back(
      {"kata", Level::kNote, "no configuration of Kata is where Kata looks for it", {}});
}

Symptom examine_debugfs(const fs::path& root) {
  const fs::path debugfs = root / "sys/kernel/debug";
  if (is_there(debugfs / "kvm")) {
    return {"debugfs", Level::kGood, "KVM's debugfs tells which thread is which vCPU", {}};
  }
  const auto names = base::list_directory(debugfs);
  if (names && !names->empty()) {
    return {"debugfs", Level::kNote, "debugfs is there and has nothing of KVM",
            "load the kvm module"};
  }
  return {"debugfs", Level::kBad,
          "debugfs is not mounted: vCPUs are told apart by descriptors and thread names only",
          "mount -t debugfs debugfs /sys/kernel/debug"};
}

Symptom examine_kubelet(const fs::path& root) {
  const auto text = base::read_file(root / "var/lib/kubelet/cpu_manager_state");
  if (!text) {
    return {"kubelet", Level::kNote, "kubelet has no CPU manager state on this node",
            "start kubelet with cpuManagerPolicy: static"};
  }
  const auto state = words::parse_json(*text, "cpu_manager_state");
  if (!state) return {"kubelet", Level::kBad, state.error().message, "restart kubelet"};
  // Since its fourth version the file has all of it as text in "data".
  const std::string data = text_of(*state, "data");
  const auto inner = words::parse_json(data.empty() ? "{}" : data, "cpu_manager_state");
  std::string policy = text_of(*state, "policyName");
  if (policy.empty() && inner) policy = text_of(*inner, "policyName");
  if (policy == "static") {
    return {"kubelet", Level::kGood, "kubelet's CPU manager policy is static", {}};
  }
  return {"kubelet", Level::kNote,
          "kubelet's CPU manager policy is \"" + policy + "\": no container owns CPUs",
          "set cpuManagerPolicy: static in kubelet's configuration"};
}

}  // namespace

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
  Symptoms symptoms{examine_nri(root)};
  examine_kata(root, symptoms);
  symptoms.push_back(examine_debugfs(root));
  symptoms.push_back(examine_kubelet(root));
  const Symptoms machine = examine_machine(root);
  symptoms.insert(symptoms.end(), machine.begin(), machine.end());
  return symptoms;
}

}  // namespace ka::cli
