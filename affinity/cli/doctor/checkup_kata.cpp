// SPDX-License-Identifier: Apache-2.0
// Checks of `doctor`: Kata's configuration.
#include <fmt/format.h>

#include <algorithm>

#include "affinity/cli/doctor/checkup.hpp"
#include "affinity/cli/doctor/sizing.hpp"
#include "affinity/cli/kata/kata_config.hpp"
#include "affinity/cli/kata/pod_cgroups.hpp"
#include "affinity/cli/kata/profile.hpp"
#include "affinity/cli/node/node.hpp"
#include "base/files.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
using Level = Symptom::Level;
using Symptoms = std::vector<Symptom>;

/// Facts of the node that the checks depend on.
struct NodeContext {
  NodeFacts node;
  QuotaOfExclusive quota;
  /// kata-affinity keeps the cpusets of sandboxes (cgroup = "manage", cgroup v2).
  bool managed = false;
  std::vector<std::string> without_cpuset;  ///< slices_without_cpuset()

  bool is_cgroup_v1() const { return !node.cgroup_v2 && node.has_cpusets; }
};

bool manages_cgroups(const fs::path& root) {
  const auto entries = read_affinity(root);
  return entries && text_at(*entries, {"affinity", "cgroup"}) == "manage";
}

NodeContext read_context(const fs::path& root) {
  NodeContext found{read_node(root), quota_of_exclusive(root), false, slices_without_cpuset(root)};
  found.managed = !found.is_cgroup_v1() && manages_cgroups(root);
  return found;
}

/// One configuration file, with what is merged over it.
class KataFile {
 public:
  KataFile(const fs::path& file, const NodeContext& around, Symptoms& symptoms)
      : file_(file), around_(around), symptoms_(symptoms) {}

  void examine() {
    auto entries = read_merged(file_);
    if (!entries) return add_unread(entries.error());
    entries_ = std::move(*entries);
    examine_pinning();
    examine_cgroups();
    examine_pod_cgroups();
    examine_sizing();
    examine_unlimited();
  }

 private:
  void add(Level level, const std::string& text, const std::string& advice,
           const std::string& command = {}) {
    symptoms_.push_back({"kata", level, file_.native() + ": " + text, advice, command});
  }

  /// The message names the file, which may be a drop-in.
  void add_unread(const base::Error& error) {
    symptoms_.push_back({"kata", Level::kBad, error.message,
                         error.code == base::ErrorCode::kInvalid
                             ? "correct that file"
                             : "make that file readable, or remove it"});
  }

  bool runtime_flag(const char* key, bool fallback) const {
    return flag_at(entries_, {"runtime", key}).value_or(fallback);
  }

  void examine_pinning() {
    if (!runtime_flag("enable_vcpus_pinning", false)) return;
    const fs::path later = overriding(entries_, {"runtime", "enable_vcpus_pinning"}, file_);
    add(Level::kBad, "enable_vcpus_pinning is on: Kata pins vCPUs too, and overwrites our masks",
        later.empty() ? "set enable_vcpus_pinning = false in [runtime], in a drop-in under config.d"
                      : "set enable_vcpus_pinning = false in " + later.native() +
                            ", which Kata reads after the drop-in of setup",
        later.empty() ? "kata-affinityctl setup --yes" : "");
  }

  bool is_sandbox_only() const { return cli::is_sandbox_only(entries_, file_); }

  /// Where the cpuset is ours to write, either is fine. Without it, what lies inside the
  /// containers' cpuset keeps housekeeping there: with version 1 only the vCPUs do, unless all is
  /// to.
  void examine_cgroups() {
    if (around_.managed || (around_.is_cgroup_v1() && !is_sandbox_only())) return;
    add(Level::kNote,
        is_sandbox_only()
            ? "sandbox_cgroup_only is on: shim, VMM and virtiofsd are confined to the containers' "
              "cpuset, and so is housekeeping"
            : "sandbox_cgroup_only is off: the VMM and its housekeeping are confined to the "
              "containers' cpuset; shim and virtiofsd are not",
        around_.is_cgroup_v1()
            ? "set sandbox_cgroup_only = false in [runtime]: only vCPUs stay inside"
            : "set cgroup = \"manage\" in [affinity]: housekeeping moves to the shared "
              "pool",
        around_.is_cgroup_v1() ? "" : kIsolateCommand);
  }

  void examine_pod_cgroups() {
    const auto problem = pod_cgroup_problem(entries_, file_, around_.without_cpuset);
    if (problem) add(Level::kBad, problem->text, problem->advice);
  }

  bool is_static() const { return runtime_flag("static_sandbox_resource_mgmt", is_rust(file_)); }

  bool is_without_quota() const { return loses_quota(around_.node, around_.quota); }

  /// Both runtimes take the size of the cpusets where no container has a quota
  /// (calculateSandboxCPUs(), calc_cpu_resources()), and kubelet's static policy gives a container
  /// without a CPU limit the whole pool. The Go runtime alone fails if that is too many.
  void examine_unlimited() {
    const policy::CpuSet& pool = around_.node.shared_pool;
    if (is_static() || !around_.node.assigns_cpus() || pool.size() < 2) return;
    const double most = most_vcpus();
    const bool too_many = !is_rust(file_) && most > 0 && pool.size() + 1 > most;
    add(too_many ? Level::kBad : Level::kNote,
        fmt::format("a burstable container without a CPU limit gets the whole shared pool ({}) as "
                    "its cpuset, and Kata hotplugs {} vCPUs for it{}",
                    policy::format_list(pool), pool.size(),
                    too_many
                        ? fmt::format(": more than default_maxvcpus ({:.0f}), so the pod fails "
                                      "with \"Cannot hotplug {} CPUs\"",
                                      most, pool.size())
                        : ""),
        std::string("give such containers a CPU limit; a LimitRange sets one for a namespace") +
            (is_without_quota() ? ""
                                : "; or set static_sandbox_resource_mgmt = true in [runtime]"));
  }

  double most_vcpus() const {
    const auto limits = hypervisor_numbers(entries_, "default_maxvcpus");
    const double limit = limits.empty() ? 0 : *std::ranges::min_element(limits);
    return limit >= 1 ? limit : around_.node.cpus;
  }

  /// A VM wants one vCPU for each CPU that its containers own, and one more.
  void examine_sizing() {
    if (is_static() && is_without_quota()) examine_quota();
    if (!is_static() && !is_without_quota()) {
      add(Level::kNote,
          "static_sandbox_resource_mgmt is off: vCPUs are hotplugged while containers start, and "
          "pinned only after that",
          "set static_sandbox_resource_mgmt = true in [runtime]");
    }
    for (const double most : hypervisor_numbers(entries_, "default_maxvcpus")) {
      if (most >= 1 && most < around_.node.cpus) examine_most(most);
    }
    if (is_static() && is_rust(file_)) examine_overhead();
  }

  void examine_overhead() {
    const auto overheads = hypervisor_numbers(entries_, "overhead_vcpus");
    if (std::ranges::find(overheads, 0.0) == overheads.end()) return;
    add(Level::kNote,
        "overhead_vcpus is 0: the VM has no extra vCPU, so the guest's kernel and shared "
        "containers "
        "run on a container's vCPU",
        "set overhead_vcpus = 0.2 in [hypervisor.*]: it is rounded up to one more vCPU");
  }

  /// Both runtimes count the quota in the sandbox's annotations (CalculateSandboxSizing(),
  /// InitialSizeManager): without one the Go runtime has only default_vcpus, runtime-rs only
  /// overhead_vcpus. Both count cpusets only where no container of the pod has a quota.
  void examine_quota() {
    add(around_.quota.is_known ? Level::kBad : Level::kNote,
        std::string(kQuotaSizing) + ", and " + around_.quota.kubelet +
            " sets none on pods with exclusive CPUs: such a VM gets " +
            (is_rust(file_) ? "1 vCPU" : "only default_vcpus"),
        "set static_sandbox_resource_mgmt = false in [runtime]: vCPUs are then hotplugged for the "
        "cpuset, if no other container of the pod has a CPU limit; or the feature gate "
        "DisableCPUQuotaWithExclusiveCPUs: false in kubelet's configuration");
  }

  void examine_most(double most) {
    add(Level::kNote,
        fmt::format("default_maxvcpus is {:.0f}: a pod that owns {:.0f} CPUs or more gets too few "
                    "vCPUs",
                    most, most),
        "set default_maxvcpus = 0 in [hypervisor.*]: the number of CPUs of the node");
  }

  const fs::path& file_;
  const NodeContext& around_;
  Symptoms& symptoms_;
  config::Entries entries_;
};

}  // namespace

Symptoms examine_kata(const fs::path& root) {
  const std::vector<fs::path> files = find_kata(root);
  if (files.empty()) {
    return {{"kata", Level::kNote, "no Kata configuration in the default locations",
             "install Kata Containers; if its configuration is elsewhere, link it to "
             "/etc/kata-containers/configuration.toml"}};
  }
  Symptoms symptoms;
  const NodeContext around = read_context(root);
  for (const fs::path& file : files) KataFile(file, around, symptoms).examine();
  if (symptoms.empty()) {
    symptoms.push_back({"kata", Level::kGood, "no setting of Kata's defeats isolation", {}});
  }
  return symptoms;
}

}  // namespace ka::cli
