// SPDX-License-Identifier: Apache-2.0
// Simulates a node: pods start and end, and the effect on its CPUs is counted.
#pragma once

#include "policy/allocate/holdings.hpp"

namespace ka::policy::allocate {

/// Counters so far. A container is split over groups of a level when it lies on more of
/// them than its CPUs would need on an empty machine.
struct Toll {
  int pods = 0;        ///< that asked to be admitted
  int refused = 0;     ///< pods, and resizes
  int containers = 0;  ///< that got CPUs of their own
  int split_nodes = 0;
  int split_sockets = 0;
  int split_l3s = 0;
  int split_cores = 0;  ///< containers that broke a core which was free as a whole
};

class Life {
 public:
  /// What becomes of the CPUs of init containers that no other container of the pod took over.
  enum class InitCpus {
    kFreed,
    kKept,  ///< the pod's until it goes, as in kubelet (kubernetes#112228)
  };

  /// `machine` must outlive this.
  Life(const Machine& machine, Holdings books, InitCpus inits)
      : machine_(&machine), books_(std::move(books)), inits_(inits) {}

  /// Admits a pod; its init containers have ended when this returns. The CPUs of its containers
  /// come back, by name, those of init containers too.
  Expected<std::map<std::string, CpuSet>, Refusal> add(const std::string& pod,
                                                       std::span<const PodContainer> containers);
  /// False: there was no such pod.
  bool remove(const std::string& pod);
  /// The CPUs that the container has then.
  Expected<CpuSet, Refusal> resize(const std::string& pod, const std::string& container, int cpus);
  /// The books are closed and opened again. The error says what is inconsistent.
  std::optional<std::string> restart();

  const Holdings& books() const { return books_; }
  const Toll& toll() const { return toll_; }
  /// The share of the free CPUs whose core is in use.
  double broken() const;

 private:
  void count(const CpuSet& free, const Holding& holding);

  const Machine* machine_;
  Holdings books_;
  InitCpus inits_;
  Toll toll_;
};

}  // namespace ka::policy::allocate
