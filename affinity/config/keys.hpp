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
     "false: give every thread back the mask it would have without kata-affinity."},
    {"mode", Type::kChoice, "follow", "follow observe managed", false,
     "follow: apply kubelet's cpusets. observe: plan and report, write nothing. managed: reserved "
     "for CPU allocation by kata-affinity; rejected today."},
    {"vcpu_pinning", Type::kChoice, "dedicated", "dedicated balanced mask none", true,
     "dedicated: one CPU for each vCPU of an exclusive container; other vCPUs float. balanced: as "
     "dedicated, with floating vCPUs spread over the housekeeping CPUs. mask: every vCPU floats on "
     "the sandbox mask. none: do not place vCPUs."},
    {"housekeeping", Type::kHousekeeping, "shared-pool", "shared-pool sandbox isolate", true,
     "CPUs for everything but dedicated vCPUs. shared-pool: the node's shared pool, where the "
     "thread's cgroup allows it; else as sandbox. sandbox: the sandbox mask without dedicated "
     "CPUs. isolate: one core of the sandbox, set aside. Or a cpuset."},
    {"emulator", Type::kHousekeeping, "", "shared-pool sandbox isolate", true,
     "Overrides housekeeping for emulator threads."},
    {"iothread", Type::kHousekeeping, "", "shared-pool sandbox isolate", true,
     "Overrides housekeeping for iothreads."},
    {"vhost", Type::kHousekeeping, "", "shared-pool sandbox isolate", true,
     "Overrides housekeeping for vhost workers and vhost-user back-ends."},
    {"virtiofsd", Type::kHousekeeping, "", "shared-pool sandbox isolate", true,
     "Overrides housekeeping for virtiofsd."},
    {"shim", Type::kHousekeeping, "", "shared-pool sandbox isolate", true,
     "Overrides housekeeping for Kata's shim."},
    {"cgroup", Type::kChoice, "obey", "obey manage", true,
     "obey: plan within the sandbox cgroup's cpuset and never write it. manage: write it (cgroup "
     "v2), so that it allows the sandbox mask and housekeeping, and nothing else."},
    {"cfs_quota", Type::kChoice, "keep", "keep lift", true,
     "lift: remove the CFS quota from an exclusive container's cgroup in the guest."},
    {"memory", Type::kChoice, "follow", "follow migrate", true,
     "follow: leave memory where Kata and the cgroup put it. migrate: move misplaced pages to the "
     "NUMA nodes of the CPUs, in small steps; not with passed-through devices."},
    {"guest", Type::kChoice, "auto", "auto agent kata-agent none", true,
     "Which agent in the guest applies container cpusets. auto: ours, or kata-agent where ours "
     "does not answer."},
    {"guest_irqs", Type::kChoice, "floating", "floating none", true,
     "floating: keep guest interrupts off dedicated vCPUs."},
    {"environment", Type::kFlag, "false", "", true,
     "true: tell new containers which CPUs they have, by files mounted at /run/kata-affinity and "
     "by environment variables. Requires NRI; no effect with guest = none."},
    {"metrics_listen", Type::kAddress, "", "", false,
     "ADDRESS:PORT on which to serve Prometheus metrics over TCP, in addition to the API socket."},
    {"log_level", Type::kChoice, "info", "error warning info debug", false,
     "Least severe messages to log."},
    {"state_dir", Type::kPath, "/run/kata-affinity/state", "", false,
     "Directory for state that survives a daemon restart. Must not survive a reboot."},
    {"kubelet_state", Type::kPathOrNone, "/var/lib/kubelet/cpu_manager_state", "", false,
     "kubelet's CPU manager state: which container owns which CPU. Empty: not read."},
    {"nri_socket", Type::kPathOrNone, "/var/run/nri/nri.sock", "", false,
     "The container runtime's NRI socket. Empty: NRI is not used."},
    {"libvirt_uri", Type::kUri, "", "", false,
     "The libvirt daemon of this node, for example qemu:///system. Empty: libvirt is not loaded."},
    {"libvirt_domains", Type::kIds, "", "", false,
     "Names of libvirt domains to treat as sandboxes; the name is the sandbox id."},
    {"libvirt_config", Type::kFlag, "false", "", false,
     "true: also write pins to the domain's persistent configuration."},
    {"allow_annotations", Type::kNames, "", "", false,
     "Keys that pods may set by annotation kata-affinity.io/KEY: environment, libvirt_domain."},
    {"drift_check", Type::kSeconds, "10", "", false,
     "Seconds between checks for masks that another program changed."},
    {"real_shim", Type::kProgram, "containerd-shim-kata-v2", "", false,
     "Shim that containerd-shim-kata-affinity-v2 starts: an absolute path, or a name looked up in "
     "PATH and beside the proxy."},
};

/// nullptr where there is no such key.
constexpr const Key* find_key(std::string_view name) {
  for (const Key& key : kKeys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

}  // namespace ka::config
