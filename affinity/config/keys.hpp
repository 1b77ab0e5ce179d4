// SPDX-License-Identifier: Apache-2.0
// The settings in [affinity]: the members of Config, and in one table the keys that fill them. A
// key's row is all that there is of it: its type, default and documentation, where its value goes,
// and what a reload does with it (docs/develop/extending.md, "A setting").
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "affinity/config/key.hpp"
#include "affinity/documents/settings.hpp"
#include "base/log/log.hpp"
#include "policy/facts/role.hpp"
#include "policy/managed/rules.hpp"
#include "policy/plan/quiet.hpp"
#include "policy/plan/resource_classes.hpp"
#include "policy/plan/settings.hpp"

namespace ka::config {

enum class Mode {
  kFollow,   ///< kubelet decides the cpusets, we place threads after them
  kObserve,  ///< plan and report, write nothing
  kManaged,  ///< we give containers their CPUs, and place threads after them
};

struct Config {
  bool enable = true;
  Mode mode = Mode::kFollow;
  policy::managed::Rules managed;  ///< for kManaged
  policy::plan::Settings defaults;
  /// Complete settings of the runtime handlers that have some of their own.
  std::map<std::string, policy::plan::Settings> by_handler;
  policy::plan::ResourceClasses classes;
  std::string metrics_listen;         ///< "ADDRESS:PORT", empty: not over TCP
  std::filesystem::path read_socket;  ///< empty: none
  std::string read_socket_mode;       ///< "0660"
  /// Who reports on read_socket the classes that pods ask for; 0: root alone, on its own socket.
  std::uint32_t annotations_uid = 0;
  log::Level log_level = log::Level::kInfo;
  std::filesystem::path state_dir;
  std::filesystem::path kubelet_state;  ///< empty: not read
  std::filesystem::path pod_resources;  ///< empty: not asked
  std::filesystem::path cdi_dir;        ///< empty: not read
  std::filesystem::path nri_socket;     ///< empty: the container runtime is not asked
  std::string libvirt_uri;              ///< empty: libvirt is not loaded
  std::vector<std::string> libvirt_domains;
  bool libvirt_config = false;
  std::vector<std::string> allow_annotations;
  std::chrono::seconds drift_check{};
  policy::plan::QuietRules quiet;
  std::filesystem::path helper_socket;
  std::string real_shim;  ///< a name, or an absolute path
  /// What was read: the main file and its drop-ins, in the order of merging. Empty: no file has an
  /// [affinity] table and the defaults hold.
  std::vector<std::filesystem::path> files;
  bool has_table = false;  ///< one of `files` has an [affinity] table

  /// Whether pods may set this key by an annotation.
  bool allows(std::string_view annotation) const {
    return std::ranges::find(allow_annotations, annotation) != allow_annotations.end();
  }
};

/// Own housekeeping of a role; none for "".
template <policy::Role kRole>
void set_housekeeping(Settings& settings, const std::string& text) {
  if (!text.empty()) settings.housekeeping_by_role[kRole] = *documents::parse_housekeeping(text);
}

inline policy::plan::Grade parse_grade(std::string_view word) {
  if (word == "realtime") return policy::plan::Grade::kRealtime;
  return word == "quiet" ? policy::plan::Grade::kQuiet : policy::plan::Grade::kBestEffort;
}

template <policy::CpuSet Rules::* kMember>
void set_cpus(Rules& rules, const std::vector<std::string>& words) {
  rules.*kMember = policy::parse_list<policy::CpuTag>(words.front()).value_or(policy::CpuSet{});
}

/// Containers of these namespaces have that class.
template <policy::managed::CpuUse kUse>
void set_namespaces(Rules& rules, const std::vector<std::string>& words) {
  for (const std::string& name : words) rules.by_namespace[name] = kUse;
}

/// Not a key of ours: only a pod's annotation can set it.
inline constexpr std::string_view kDomainAnnotation = "libvirt_domain";

inline constexpr Key kKeys[] = {
    {"enable", Type::kFlag, "true", "", Reload::kApplied, &Config::enable,
     "false: restore for every thread the mask that it would have without kata-affinity."},
    {"mode", Type::kChoice, "follow", "follow observe managed", Reload::kApplied,
     [](Config& config, const std::string& text) {
       config.mode = text == "observe"   ? Mode::kObserve
                     : text == "managed" ? Mode::kManaged
                                         : Mode::kFollow;
     },
     "follow: apply kubelet's cpusets. observe: plan and report, write nothing. managed: give "
     "containers their CPUs through NRI, where kubelet's CPU manager policy is none; a change to "
     "or from managed requires a restart."},
    {"vcpu_pinning", Type::kChoice, "dedicated", "dedicated balanced mask none", Reload::kApplied,
     [](Settings& settings, const std::string& text) {
       settings.vcpu_pinning = *documents::parse_vcpu_pinning(text);
     },
     "dedicated: one CPU for each vCPU of an exclusive container; other vCPUs float. balanced: as "
     "dedicated, with floating vCPUs spread over the housekeeping CPUs. mask: every vCPU floats on "
     "the sandbox mask. none: do not place vCPUs."},
    {"housekeeping", Type::kHousekeeping, "shared-pool", "shared-pool sandbox isolate",
     Reload::kApplied,
     [](Settings& settings, const std::string& text) {
       settings.housekeeping = *documents::parse_housekeeping(text);
     },
     "CPUs for everything but dedicated vCPUs. shared-pool: the node's shared pool if the thread's "
     "cgroup allows it, else as sandbox. sandbox: the sandbox mask without dedicated CPUs. "
     "isolate: one core of the sandbox, set aside."},
    {"emulator", Type::kHousekeeping, "", "shared-pool sandbox isolate", Reload::kApplied,
     set_housekeeping<policy::Role::kEmulator>, "Overrides housekeeping for emulator threads."},
    {"iothread", Type::kHousekeeping, "", "shared-pool sandbox isolate", Reload::kApplied,
     set_housekeeping<policy::Role::kIothread>, "Overrides housekeeping for iothreads."},
    {"vhost", Type::kHousekeeping, "", "shared-pool sandbox isolate", Reload::kApplied,
     set_housekeeping<policy::Role::kVhost>,
     "Overrides housekeeping for vhost workers and vhost-user back-ends."},
    {"virtiofsd", Type::kHousekeeping, "", "shared-pool sandbox isolate", Reload::kApplied,
     set_housekeeping<policy::Role::kVirtiofsd>, "Overrides housekeeping for virtiofsd."},
    {"shim", Type::kHousekeeping, "", "shared-pool sandbox isolate", Reload::kApplied,
     set_housekeeping<policy::Role::kShim>, "Overrides housekeeping for Kata's shim."},
    {"cgroup", Type::kChoice, "obey", "obey manage", Reload::kApplied,
     [](Settings& settings, const std::string& text) { settings.manage_cgroup = text == "manage"; },
     "obey: plan within the sandbox cgroup's cpuset and never write it. manage: write it (cgroup "
     "v2), so that it allows the sandbox mask and housekeeping, and nothing else."},
    {"cfs_quota", Type::kChoice, "keep", "keep lift", Reload::kApplied,
     [](Settings& settings, const std::string& text) {
       settings.guest.lift_quota = text == "lift";
     },
     "lift: remove the CFS quota from an exclusive container's cgroup in the guest."},
    {"grade", Type::kChoice, "best-effort", "best-effort quiet realtime", Reload::kApplied,
     [](Settings& settings, const std::string& text) { settings.grade = parse_grade(text); },
     "quiet: the host's services, interrupts, workqueues and movable kernel threads leave the CPUs "
     "of dedicated vCPUs, and those of exclusive containers without a VM; requires "
     "kata-affinity-helper. realtime: the same, and dedicated vCPUs in a cpuset partition are "
     "real-time threads. best-effort: the host may run there."},
    {"allow_grades", Type::kWords, "", "best-effort quiet realtime", Reload::kApplied,
     [](Settings& settings, const std::vector<std::string>& words) {
       for (const std::string& word : words) settings.allow_grades.insert(parse_grade(word));
     },
     "Grades that pods may request by annotation kata-affinity.io/grade, if allow_annotations "
     "lists grade."},
    {"allow_crio_annotations", Type::kWords, "",
     "cpu-load-balancing.crio.io irq-load-balancing.crio.io cpu-c-states.crio.io "
     "cpu-freq-governor.crio.io cpu-quota.crio.io",
     Reload::kApplied,
     [](Settings& settings, const std::vector<std::string>& words) {
       for (const policy::TuningKindInfo& info : policy::kTuningKinds) {
         if (std::ranges::count(words, info.annotation) > 0)
           settings.allow_tuning.insert(info.kind);
       }
     },
     "CRI-O's annotations that have an effect here for containers with CPUs of their own, if "
     "allow_annotations lists crio; requires kata-affinity-helper."},
    {"quiet_namespaces", Type::kNamespaces, "", "", Reload::kApplied,
     [](Config& config, const std::vector<std::string>& words) {
       config.quiet.namespaces = {words.begin(), words.end()};
     },
     "Namespaces whose pods have grade quiet, whatever their handler's grade."},
    {"realtime_namespaces", Type::kNamespaces, "", "", Reload::kApplied,
     [](Config& config, const std::vector<std::string>& words) {
       config.quiet.realtime_namespaces = {words.begin(), words.end()};
     },
     "Namespaces whose pods have grade realtime, whatever their handler's grade."},
    {"realtime_priority", Type::kPriority, "1", "", Reload::kApplied,
     [](Config& config, const std::string& text) {
       config.quiet.realtime_priority = std::stoi(text);
     },
     "SCHED_FIFO priority of dedicated vCPUs with grade realtime."},
    {"realtime_power", Type::kChoice, "full", "full keep", Reload::kApplied,
     [](Config& config, const std::string& text) {
       config.quiet.realtime_full_power = text == "full";
     },
     "full: CPUs of dedicated vCPUs with grade realtime wake up without delay and run at full "
     "frequency, if the machine has idle states and governors. keep: leave both unchanged."},
    {"realtime_rdtclass", Type::kClass, "", "", Reload::kApplied,
     [](Config& config, const std::string& text) { config.quiet.realtime_rdtclass = text; },
     "Resource class for the vCPUs of exclusive containers with grade realtime whose pod requests "
     "none. Empty: none."},
    {"quiet_floor", Type::kCpus, "", "", Reload::kApplied,
     [](Config& config, const std::string& text) {
       config.quiet.floor = policy::parse_list<policy::CpuTag>(text).value_or(policy::CpuSet{});
     },
     "CPUs that grade = quiet never takes from the host. Empty: the shared pool and kubelet's "
     "reserved CPUs, or one core if there are none."},
    {"quiet_partitions", Type::kFlag, "true", "", Reload::kApplied,
     [](Config& config, const std::string& text) { config.quiet.partitions = text == "true"; },
     "true: dedicated vCPUs of quiet sandboxes get a cpuset partition of their own, if the kernel "
     "has remote ones (6.7 and later) and the sandbox's cgroup also has other CPUs."},
    {"helper_socket", Type::kPath, "/run/kata-affinity/helper.sock", "", Reload::kNextStart,
     &Config::helper_socket,
     "Socket of kata-affinity-helper, for the grades quiet and realtime, and classes with l3, l2 "
     "or mba."},
    {"memory", Type::kChoice, "follow", "follow migrate", Reload::kApplied,
     [](Settings& settings, const std::string& text) { settings.move_memory = text == "migrate"; },
     "follow: leave memory where Kata and the cgroup put it. migrate: move misplaced pages to the "
     "NUMA nodes of the CPUs, in small steps; not with passed-through devices."},
    {"guest", Type::kChoice, "auto", "auto agent kata-agent none", Reload::kApplied,
     [](Settings& settings, const std::string& text) {
       settings.guest.agent = *documents::parse_guest_agent(text);
     },
     "Which agent in the guest applies container cpusets. auto: ours, or kata-agent if ours does "
     "not respond."},
    {"guest_irqs", Type::kChoice, "floating", "floating none", Reload::kApplied,
     [](Settings& settings, const std::string& text) {
       settings.guest.move_interrupts = text == "floating";
     },
     "floating: keep guest interrupts off dedicated vCPUs."},
    {"environment", Type::kFlag, "false", "", Reload::kApplied,
     [](Settings& settings, const std::string& text) {
       settings.guest.environment = text == "true";
     },
     "true: give new containers the list of their CPUs, in files mounted at /run/kata-affinity "
     "and in environment variables. Requires NRI; no effect with guest = none."},
    {"metrics_listen", Type::kAddress, "", "", Reload::kNextStart, &Config::metrics_listen,
     "ADDRESS:PORT on which to serve Prometheus metrics over TCP, in addition to the API socket."},
    {"read_socket", Type::kPathOrNone, "", "", Reload::kNextStart, &Config::read_socket,
     "Second socket of the API, for clients that are not root. It accepts reads and verify, and "
     "refuses everything else. Empty: none."},
    {"read_socket_mode", Type::kChoice, "0660", "0600 0660 0666", Reload::kNextStart,
     &Config::read_socket_mode,
     "Permissions of read_socket. Its group is that of its directory if that has the setgid bit, "
     "else the daemon's."},
    {"log_level", Type::kChoice, "info", "error warning info debug", Reload::kApplied,
     [](Config& config, const std::string& text) { config.log_level = *log::parse_level(text); },
     "Lowest severity of messages to log."},
    {"state_dir", Type::kPath, "/run/kata-affinity/state", "", Reload::kNextStart,
     &Config::state_dir,
     "Directory for state that survives a daemon restart. Must not survive a reboot."},
    {"kubelet_state", Type::kPathOrNone, "/var/lib/kubelet/cpu_manager_state", "",
     Reload::kNextStart, &Config::kubelet_state,
     "kubelet's CPU manager state: which container owns which CPU. Empty: not read."},
    {"pod_resources", Type::kPathOrNone, "/var/lib/kubelet/pod-resources/kubelet.sock", "",
     Reload::kNextStart, &Config::pod_resources,
     "Socket of kubelet's PodResources API: who owns which CPU if kubelet_state does not say, and "
     "a cross-check for verify. Empty: not used."},
    {"cdi_dir", Type::kPathOrNone, "/var/run/cdi", "", Reload::kNextStart, &Config::cdi_dir,
     "Directory of CDI files: which CPUs dra-driver-cpu has prepared for a ResourceClaim. Empty: "
     "not read."},
    {"nri_socket", Type::kPathOrNone, "/var/run/nri/nri.sock", "", Reload::kNextStart,
     &Config::nri_socket, "The container runtime's NRI socket. Empty: NRI is not used."},
    {"libvirt_uri", Type::kUri, "", "", Reload::kNextStart, &Config::libvirt_uri,
     "The libvirt daemon of this node, for example qemu:///system. Empty: libvirt is not loaded."},
    {"libvirt_domains", Type::kIds, "", "", Reload::kNextStart, &Config::libvirt_domains,
     "Names of libvirt domains to treat as sandboxes; the name is the sandbox id."},
    {"libvirt_config", Type::kFlag, "false", "", Reload::kNextStart, &Config::libvirt_config,
     "true: also write pins to the domain's persistent configuration."},
    {"allow_annotations", Type::kNames, "", "", Reload::kApplied, &Config::allow_annotations,
     "Keys that pods may set by annotation kata-affinity.io/KEY: environment, libvirt_domain, "
     "grade. crio: those of CRI-O that allow_crio_annotations lists. "
     "Resource classes that they may choose: scheduling-class, blockioclass, rdtclass."},
    {"drift_check", Type::kSeconds, "10", "", Reload::kApplied, &Config::drift_check,
     "Seconds between checks for masks that another program changed."},
    {"real_shim", Type::kProgram, "containerd-shim-kata-v2", "", Reload::kApplied,
     &Config::real_shim,
     "Shim that containerd-shim-kata-affinity-v2 starts: an absolute path, or a name looked up in "
     "PATH and beside the proxy."},
    {"managed.exclusive_cpus", Type::kCpus, "", "", Reload::kNextStart, set_cpus<&Rules::exclusive>,
     "CPUs that one container may get for itself. Empty: all but reserved_cpus and infra_cpus."},
    {"managed.reserved_cpus", Type::kCpus, "", "", Reload::kNextStart, set_cpus<&Rules::reserved>,
     "CPUs that always stay in the shared pool."},
    {"managed.infra_cpus", Type::kCpus, "", "", Reload::kNextStart, set_cpus<&Rules::infra>,
     "CPUs for containers of infra_namespaces, and for no others. Empty: those run in the shared "
     "pool."},
    {"managed.infra_namespaces", Type::kNamespaces, "", "", Reload::kNextStart,
     [](Rules& rules, const std::vector<std::string>& words) {
       rules.infra_namespaces = {words.begin(), words.end()};
     },
     "Namespaces whose containers run on infra_cpus."},
    {"managed.min_shared", Type::kCount, "1", "", Reload::kNextStart,
     [](Rules& rules, const std::vector<std::string>& words) {
       rules.min_shared = std::stoi(words.front());
     },
     "Number of CPUs that always stay in the shared pool, reserved_cpus among them."},
    {"managed.placement", Type::kChoice, "fitted", "fitted packed distributed", Reload::kNextStart,
     [](Rules& rules, const std::vector<std::string>& words) { rules.placement = words.front(); },
     "How CPUs are chosen. fitted: on as few NUMA nodes, sockets and L3 caches as possible. "
     "packed: "
     "as kubelet. distributed: evenly over NUMA nodes."},
    {"managed.steps", Type::kWords, "",
     "coarse-to-fine split-first whole-core-request reserved cpu-class numa-affinity near-held "
     "isolated-first least-spread spill count-free even-splits whole-groups part-of-l3 single-cpus "
     "one-socket balance rank take-split take-fitting keep-promised keep-packed",
     Reload::kNextStart,
     [](Rules& rules, const std::vector<std::string>& words) { rules.steps = words; },
     "Steps of the allocation pipeline to use instead of those of placement. Empty: those of "
     "placement."},
    {"managed.align", Type::kChoice, "none", "none best-effort restricted single-numa-node",
     Reload::kNextStart,
     [](Rules& rules, const std::vector<std::string>& words) {
       rules.align = *policy::allocate::parse_hint_policy(words.front());
     },
     "Policy by which CPUs are aligned with the container's memory limit, huge pages and devices "
     "by NUMA node, as in kubelet's topology manager."},
    {"managed.align_scope", Type::kChoice, "container", "container pod", Reload::kNextStart,
     [](Rules& rules, const std::vector<std::string>& words) {
       rules.align_pods = words.front() == "pod";
     },
     "pod: one set of NUMA nodes for all containers of a pod."},
    {"managed.memory", Type::kChoice, "any", "any follow", Reload::kNextStart,
     [](Rules& rules, const std::vector<std::string>& words) {
       rules.bind_memory = words.front() == "follow";
     },
     "NUMA nodes that memory of runc containers with CPUs comes from. any: all. follow: those of "
     "the CPUs, if they have room for the container's memory limit when it is created."},
    {"managed.full_cores", Type::kFlag, "false", "", Reload::kNextStart,
     [](Rules& rules, const std::vector<std::string>& words) {
       if (words.front() == "true") rules.options.add(policy::allocate::CpuOption::kFullPcpusOnly);
     },
     "true: exclusive containers get whole cores only, as with kubelet's full-pcpus-only."},
    {"managed.guaranteed_class", Type::kChoice, "exclusive", "exclusive share none",
     Reload::kNextStart,
     [](Rules& rules, const std::vector<std::string>& words) {
       rules.guaranteed = *policy::managed::parse_class(words.front());
     },
     "Class of containers with a limit of whole CPUs in Guaranteed pods."},
    {"managed.exclusive_namespaces", Type::kNamespaces, "", "", Reload::kNextStart,
     set_namespaces<policy::managed::CpuUse::kExclusive>,
     "Namespaces whose containers with a limit of whole CPUs have class exclusive."},
    {"managed.share_namespaces", Type::kNamespaces, "", "", Reload::kNextStart,
     set_namespaces<policy::managed::CpuUse::kShare>, "The same for class share."},
    {"managed.none_namespaces", Type::kNamespaces, "", "", Reload::kNextStart,
     set_namespaces<policy::managed::CpuUse::kNone>, "The same for class none."},
    {"managed.annotations_uid", Type::kUser, "0", "", Reload::kNextStart,
     [](Config& config, const std::string& text) {
       config.annotations_uid = static_cast<std::uint32_t>(std::stoul(text));
     },
     "User that may report on read_socket the classes that running pods request by annotation: "
     "the cluster's reporter. 0: no one."},
    {"managed.allow_classes", Type::kWords, "", "none exclusive share", Reload::kNextStart,
     [](Rules& rules, const std::vector<std::string>& words) {
       for (const std::string& word : words) {
         rules.allowed.insert(*policy::managed::parse_class(word));
       }
     },
     "Classes that pods may choose by annotation kata-affinity.io/cpu-manager or "
     "qos.gocrane.io/cpu-manager."},
    {"managed.on_failure", Type::kChoice, "shared-pool", "shared-pool refuse", Reload::kNextStart,
     [](Rules& rules, const std::vector<std::string>& words) {
       rules.refuse = words.front() == "refuse";
     },
     "What happens to a container that cannot have its class, which an event reports. shared-pool: "
     "it runs there. refuse: it is not created."},
};

/// nullptr where there is no such key.
constexpr const Key* find_key(std::string_view name) {
  const auto* key = std::ranges::find(kKeys, name, &Key::name);
  return key == std::end(kKeys) ? nullptr : key;
}

/// Where a key stands below [affinity].
inline std::vector<std::string> path_of(const Key& key) {
  const std::size_t dot = key.name.find('.');
  if (dot == std::string_view::npos) return {std::string(key.name)};
  return {std::string(key.name.substr(0, dot)), std::string(key.name.substr(dot + 1))};
}

static_assert(std::ranges::all_of(policy::kRoles, [](const policy::RoleInfo& role) {
  return !role.has_setting || find_key(role.name) != nullptr;
}));

}  // namespace ka::config
