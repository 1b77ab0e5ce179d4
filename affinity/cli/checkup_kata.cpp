// What `doctor` looks at in Kata's configuration.
#include <fmt/format.h>

#include <algorithm>

#include "affinity/base/files.hpp"
#include "affinity/cli/checkup.hpp"
#include "affinity/cli/kata_config.hpp"
#include "policy/facts/id_set.hpp"
#include "shim-ext/watch/kubelet_state.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
using Level = Symptom::Level;
using Symptoms = std::vector<Symptom>;

/// The two runtimes have different defaults.
bool is_rust(const fs::path& file) { return file.native().find("runtime-rs") != std::string::npos; }

int online_cpus(const fs::path& root) {
  const auto text = base::read_file(root / "sys/devices/system/cpu/online");
  const auto cpus = policy::parse_list<policy::CpuTag>(text.value_or(""));
  return cpus ? cpus->size() : 0;
}

/// One configuration file, with what is merged over it.
class KataFile {
 public:
  KataFile(const fs::path& file, Symptoms& symptoms) : file_(file), symptoms_(symptoms) {}

  void examine(int cpus_of_node) {
    auto entries = read_merged(file_);
    if (!entries) return add(Level::kBad, entries.error().message, "mend that file");
    entries_ = std::move(*entries);
    examine_pinning();
    examine_cgroups();
    examine_sizing(cpus_of_node);
  }

 private:
  void add(Level level, const std::string& text, const std::string& advice) {
    symptoms_.push_back({"kata", level, file_.native() + ": " + text, advice});
  }

  bool runtime_flag(const char* key, bool fallback) const {
    return flag_at(entries_, {"runtime", key}).value_or(fallback);
  }

  void examine_pinning() {
    if (!runtime_flag("enable_vcpus_pinning", false)) return;
    add(Level::kBad,
        "enable_vcpus_pinning is on: Kata pins vCPUs too, and undoes what is done here",
        "set enable_vcpus_pinning = false in [runtime], best in a file in config.d beside it");
  }

  void examine_cgroups() {
    if (runtime_flag("sandbox_cgroup_only", is_rust(file_))) {
      add(Level::kNote,
          "sandbox_cgroup_only is on: shim, VMM and virtiofsd live inside the containers' cpuset, "
          "and so does housekeeping",
          {});
      return;
    }
    add(Level::kNote,
        "sandbox_cgroup_only is off: with cgroup v2 the whole VMM is in the containers' cpuset, "
        "shim and virtiofsd are not",
        "sandbox_cgroup_only = true makes it the same on every node");
  }

  /// A VM wants one vCPU for each CPU that its containers own, and one more.
  void examine_sizing(int cpus_of_node) {
    const bool is_static = runtime_flag("static_sandbox_resource_mgmt", is_rust(file_));
    if (!is_static) {
      add(Level::kNote,
          "static_sandbox_resource_mgmt is off: vCPUs are plugged while containers start, and are "
          "placed only after that",
          "set static_sandbox_resource_mgmt = true in [runtime]");
    }
    for (const double most : hypervisor_numbers(entries_, "default_maxvcpus")) {
      if (most >= 1 && most < cpus_of_node) examine_most(most);
    }
    if (!is_static || !is_rust(file_)) return;
    const auto overheads = hypervisor_numbers(entries_, "overhead_vcpus");
    if (std::ranges::find(overheads, 0.0) == overheads.end()) return;
    add(Level::kNote,
        "overhead_vcpus is 0: a VM has no vCPU beside those of its containers, so the guest's "
        "kernel and shared containers run on one that belongs to a container",
        "set overhead_vcpus = 0.2 in [hypervisor.*]: it is rounded up to one more vCPU");
  }

  void examine_most(double most) {
    add(Level::kNote,
        fmt::format("default_maxvcpus is {:.0f}: a pod that owns {:.0f} CPUs or more gets too few "
                    "vCPUs",
                    most, most),
        "set default_maxvcpus = 0 in [hypervisor.*]: as many as the node has CPUs");
  }

  const fs::path& file_;
  Symptoms& symptoms_;
  config::Entries entries_;
};

/// runtime-rs (CpuInfo::adjust_config()) and the Go runtime before 3.10 (defaultMaxVCPUs()) count
/// the CPUs that their shim may use, and the proxy has moved to the shared pool before it starts
/// the shim. Since 3.10 the Go runtime counts what /proc/cpuinfo has.
void examine_proxy(const fs::path& root, int cpus_of_node, Symptoms& symptoms) {
  const auto containerd = read_containerd(root);
  if (!containerd || containerd->proxied.empty()) return;
  const auto state = read_kubelet_state(root);
  if (!state || !state->seen.shared_pool) return;
  const auto& pool = *state->seen.shared_pool;
  if (pool.empty() || pool.size() >= cpus_of_node) return;
  symptoms.push_back(
      {"kata", Level::kNote,
       fmt::format("handler {} is behind the shim proxy: a VM that is born now, in the shared pool "
                   "({}), gets {} vCPUs at most from runtime-rs, or from the Go runtime before "
                   "3.10: these count the CPUs of their shim",
                   fmt::join(containerd->proxied, ", "), policy::format_list(pool), pool.size()),
       "by NRI (containerd 1.7 and later) sandboxes need no proxy"});
}

}  // namespace

Symptoms examine_kata(const fs::path& root) {
  Symptoms symptoms;
  const int cpus = online_cpus(root);
  for (const fs::path& file : find_kata(root)) KataFile(file, symptoms).examine(cpus);
  if (symptoms.empty()) {
    symptoms.push_back(
        {"kata", Level::kNote, "no configuration of Kata is where Kata looks for it", {}});
  }
  examine_proxy(root, cpus, symptoms);
  return symptoms;
}

}  // namespace ka::cli
