// SPDX-License-Identifier: Apache-2.0
// The keys of [affinity], in one table: what parses them, fills in defaults and documents them.
#pragma once

#include <string_view>

namespace ka::config {

enum class Type {
  kFlag,          ///< true or false
  kChoice,        ///< one of `allowed`
  kHousekeeping,  ///< a word of `allowed`, or a cpuset; "" as default: as `housekeeping`
  kPath,          ///< an absolute path
  kProgram,       ///< a program's name without a slash, or an absolute path
  kPathOrNone,    ///< an absolute path, or empty
  kAddress,       ///< "ADDRESS:PORT", numeric; "" for none
  kSeconds,       ///< a whole number, 1 to 86400
  kUri,           ///< a libvirt URI of this machine, or empty
  kIds,           ///< an array of ids of sandboxes
  kNames,         ///< an array of what a single pod may set by an annotation
};

struct Key {
  std::string_view name;
  Type type;
  std::string_view fallback;  ///< the value where nobody sets one
  std::string_view allowed;   ///< of a choice: the values, separated by blanks
  bool per_sandbox;           ///< may stand in [affinity.handler.NAME]
  std::string_view doc;       ///< one sentence
};

inline constexpr Key kKeys[] = {
    {"enable", Type::kFlag, "true", "", false,
     "false: every thread is given back the mask it would have without kata-affinity."},
    {"mode", Type::kChoice, "follow", "follow observe managed", false,
     "follow: kubelet decides the cpusets. observe: plan and report, write nothing. managed: "
     "kata-affinity allocates them."},
    {"vcpu_pinning", Type::kChoice, "dedicated", "dedicated balanced mask none", true,
     "dedicated: one CPU for each vCPU of an exclusive container, the others float. balanced: the "
     "floating ones are spread over the housekeeping CPUs. mask: every vCPU floats on the sandbox "
     "mask. none: vCPUs are not placed."},
    {"housekeeping", Type::kHousekeeping, "shared-pool", "shared-pool sandbox isolate", true,
     "Where everything but dedicated vCPUs runs. shared-pool: the node's shared pool, each thread "
     "as far as its cgroup allows it, else as sandbox. sandbox: the sandbox mask without dedicated "
     "CPUs. isolate: a core of the sandbox set aside. Or a cpuset."},
    {"emulator", Type::kHousekeeping, "", "shared-pool sandbox isolate", true,
     "In place of housekeeping, for emulator threads."},
    {"iothread", Type::kHousekeeping, "", "shared-pool sandbox isolate", true,
     "In place of housekeeping, for iothreads."},
    {"vhost", Type::kHousekeeping, "", "shared-pool sandbox isolate", true,
     "In place of housekeeping, for vhost workers and vhost-user back-ends."},
    {"virtiofsd", Type::kHousekeeping, "", "shared-pool sandbox isolate", true,
     "In place of housekeeping, for virtiofsd."},
    {"shim", Type::kHousekeeping, "", "shared-pool sandbox isolate", true,
     "In place of housekeeping, for Kata's shim."},
    {"cgroup", Type::kChoice, "obey", "obey manage", true,
     "obey: plan inside the sandbox cgroup's cpuset, write none. manage: write it (cgroup version "
     "2), so that it allows the sandbox mask and housekeeping, and nothing else."},
    {"cfs_quota", Type::kChoice, "keep", "keep lift", true,
     "lift: no CFS quota in the guest's cgroup of an exclusive container."},
    {"memory", Type::kChoice, "follow", "follow migrate", true,
     "follow: Kata and the cgroup decide where memory is. migrate: what lies elsewhere is moved to "
     "the nodes of the CPUs, step by step; not where a device is passed through."},
    {"guest", Type::kChoice, "auto", "auto agent kata-agent none", true,
     "Through whom the guest is told which vCPUs a container owns."},
    {"guest_irqs", Type::kChoice, "floating", "floating none", true,
     "floating: keep interrupts in the guest off dedicated vCPUs."},
    {"environment", Type::kFlag, "false", "", true,
     "true: a container that is created is told where it runs, by files in /run/kata-affinity, "
     "which is mounted into it, and by variables of its environment. By NRI only, and not where "
     "guest is none."},
    {"metrics_listen", Type::kAddress, "", "", false,
     "Where Prometheus metrics are served over TCP, beside the API's socket."},
    {"log_level", Type::kChoice, "info", "error warning info debug", false, "How much is logged."},
    {"state_dir", Type::kPath, "/run/kata-affinity/state", "", false,
     "Where a restarted daemon finds what it knew. It must not outlive a reboot."},
    {"kubelet_state", Type::kPathOrNone, "/var/lib/kubelet/cpu_manager_state", "", false,
     "kubelet's CPU manager state: who owns which CPU; empty: not read."},
    {"nri_socket", Type::kPathOrNone, "/var/run/nri/nri.sock", "", false,
     "The container runtime's NRI; empty: not used."},
    {"libvirt_uri", Type::kUri, "", "", false,
     "The libvirt daemon of this node, as in qemu:///system; empty: libvirt is not loaded."},
    {"libvirt_domains", Type::kIds, "", "", false,
     "libvirt domains that are sandboxes, by name, under the name as id."},
    {"libvirt_config", Type::kFlag, "false", "", false,
     "true: pins are also written to the domain's configuration, for its next start."},
    {"allow_annotations", Type::kNames, "", "", false,
     "Keys that a pod may set for itself by annotations kata-affinity.io/KEY; environment, or "
     "libvirt_domain: the libvirt domain that it is."},
    {"drift_check", Type::kSeconds, "10", "", false,
     "Seconds between two looks for masks that someone else changed."},
    {"real_shim", Type::kProgram, "containerd-shim-kata-v2", "", false,
     "What containerd-shim-kata-affinity-v2 starts: an absolute path, or a name to be found in "
     "PATH "
     "or beside it."},
};

/// nullptr where there is no such key.
constexpr const Key* find_key(std::string_view name) {
  for (const Key& key : kKeys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

}  // namespace ka::config
