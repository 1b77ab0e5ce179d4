// What happened, as any source tells it: the API, NRI, the shim proxy, watchers. The ledger folds
// events and does not care who sent them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::policy {

/// Who said so; shown by `explain`.
enum class Source { kApi, kNri, kProxy, kPersist, kCgroup, kKubelet, kState };

/// "api", "nri", "proxy", "persist.json", "cgroup", "kubelet", "state".
std::string_view source_name(Source source);
std::optional<Source> parse_source(std::string_view name);

/// A pod exists. Fields that are empty or absent say nothing new: what was known stays.
struct PodSeen {
  std::string id;  ///< sandbox id
  std::string pod_uid;
  std::string pod_name;        ///< "namespace/name"
  std::string handler;         ///< runtime handler
  std::optional<int> vmm_pid;  ///< a VM sandbox; absent for runc pods
  std::string cgroup;          ///< path below the cgroup mount; empty: that of the VMM
  std::string qmp_socket;      ///< a QMP socket that is ours alone
  std::string agent;           ///< address of the guest agent
};

struct PodGone {
  std::string id;
};

/// A container's spec: replaces what was known of that container, but for its name, which stays
/// where none is told. `exclusive` absent: decided by the ledger from the quota
/// (exclusive_by_quota).
struct ContainerSeen {
  std::string sandbox;
  ContainerFacts container;
  std::optional<bool> exclusive;
};

struct ContainerExited {
  std::string sandbox;
  std::string container;
};

struct ContainerGone {
  std::string sandbox;
  std::string container;
};

/// kubelet's state: the shared pool, and CPUs that are exclusive to pods we have no event of yet.
struct SharedPoolSeen {
  CpuSet cpus;
};

/// A set given by hand to a thread, or (empty `cpus`) taken back.
struct OverrideSet {
  std::string sandbox;
  Override value;
};

using EventBody = std::variant<PodSeen, PodGone, ContainerSeen, ContainerExited, ContainerGone,
                               SharedPoolSeen, OverrideSet>;

struct Event {
  Source source = Source::kApi;
  EventBody body;
};

}  // namespace ka::policy
