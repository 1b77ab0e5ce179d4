// SPDX-License-Identifier: Apache-2.0
// The node as it really is: what kubelet decided, what the container runtime runs, which threads
// there are. It tells of itself in events, and does not care who hears them.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "policy/ledger/event.hpp"

namespace ka::model {

constexpr int kCpus = 8;
constexpr std::size_t kMostPods = 6;

/// Who says which container owns which CPUs.
enum class Assigner {
  kNone,
  kFile,    ///< kubelet's state file
  kApi,     ///< kubelet's PodResources API, where there is no such file
  kDriver,  ///< dra-driver-cpu's CDI files, and the environment of containers
};

/// All that it says.
using Assigned = std::variant<policy::ledger::KubeletSeen, policy::ledger::ResourcesSeen,
                              policy::ledger::PreparedSeen>;

policy::ledger::Source source_of(Assigner assigner);

struct Container {
  std::string id, name;
  policy::CpuSet cpus;   ///< as the runtime has it
  policy::CpuSet claim;  ///< that kubelet gave to it alone
  bool owns = false;     ///< kubelet gave it some
  bool runs = false, exited = false;
};

/// Its id says so.
inline bool is_domain(const std::string& pod) { return pod.starts_with("vm"); }

struct Pod {
  std::string id, uid;
  bool is_vm = true;
  bool is_domain = false;  ///< of libvirt: no runtime and no kubelet knows it
  bool confined = false;   ///< Kata writes what its containers may use to its cgroup
  int pid = 0;             ///< of its VMM; 0: none, or it has ended
  int vcpus = 0;
  bool runs = false, gone = false;  ///< as the runtime has it
  std::vector<Container> containers;

  policy::CpuSet cpus() const;  ///< of all containers that run
  policy::CpuSet owned() const;
};

class World {
 public:
  World(policy::ledger::Source runtime, Assigner assigner, bool has_domains)
      : runtime_(runtime), assigner_(assigner), has_domains_(has_domains) {}

  /// kubelet admits a pod, or an operator defines a domain, if there is room; nullptr: there is
  /// none.
  Pod* admit(std::uint32_t choice);
  /// One of the pods for which `fits` holds; nullptr: there is none.
  template <typename Fits>
  Pod* choose(std::uint32_t choice, const Fits& fits);
  /// kubelet takes back the CPUs of a pod that the runtime has no more.
  void forget(const Pod& pod);
  /// kubelet restarts without its state: its pods get CPUs anew, in another order, and those that
  /// have gone are forgotten. The runtime does not know yet.
  void reassign(std::uint32_t choice);
  Pod* find(const std::string& id);
  Pod* by_pid(int pid);

  policy::CpuSet claimed() const;
  policy::CpuSet pool() const { return policy::CpuSet::range(0, kCpus - 1) - claimed(); }
  /// What the others own. A domain does while it runs, once an operator has said so.
  policy::CpuSet foreign_to(const Pod& pod) const;
  std::vector<Pod>& pods() { return pods_; }

  Assigned assigned() const;
  policy::ledger::Event seen(const Pod& pod) const;
  policy::ledger::Event seen(const Pod& pod, const Container& container) const;
  /// What an operator says of a domain's container.
  static policy::ledger::Event described(const Pod& pod, const Container& container);
  /// All that the runtime has.
  std::vector<policy::ledger::Event> all() const;
  policy::ledger::Source runtime() const { return runtime_; }
  /// Kata's persist.json does not.
  bool reports_exits() const { return runtime_ != policy::ledger::Source::kPersist; }

 private:
  policy::ledger::KubeletSeen in_file() const;
  policy::ledger::ResourcesSeen in_response() const;
  policy::ledger::PreparedSeen prepared() const;
  std::vector<Pod> of_kubelet() const;

  policy::ledger::Source runtime_;
  Assigner assigner_;
  bool has_domains_;
  int made_ = 0;
  std::vector<Pod> pods_;
};

template <typename Fits>
Pod* World::choose(std::uint32_t choice, const Fits& fits) {
  std::vector<Pod*> fitting;
  for (Pod& pod : pods_) {
    if (fits(pod)) fitting.push_back(&pod);
  }
  return fitting.empty() ? nullptr : fitting[choice % fitting.size()];
}

}  // namespace ka::model
