// SPDX-License-Identifier: Apache-2.0
// What libvirt records of a domain's threads (virsh vcpupin, emulatorpin, iothreadinfo), compared
// with what it should record, and changed where it differs.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/plan/domains.hpp"
#include "vmm/libvirt/library.hpp"

namespace ka::libvirt {

using Pins = policy::plan::DomainPins;

/// The domain itself, or what it will be when it is started the next time.
enum class Scope { kLive, kConfig };
/// virDomainModificationImpact of a call about it.
inline unsigned flags_of(Scope scope) {
  return scope == Scope::kLive ? VIR_DOMAIN_AFFECT_LIVE : VIR_DOMAIN_AFFECT_CONFIG;
}

/// One domain's pins. Calls block; the connection must outlive it.
class Record {
 public:
  /// `host_cpus`: how many CPU numbers the node has (virNodeGetCPUMap).
  Record(const Library& library, virDomainPtr domain, int host_cpus)
      : library_(library), domain_(domain), host_cpus_(host_cpus) {}

  /// Of the vCPUs that are there, the emulator, the iothreads. A driver may lack some of it.
  base::Result<Pins> read(Scope scope) const;
  /// Makes the record equal to `wanted`; gives the number of calls that this took. Stops at the
  /// first failure, and before the next call once `is_outdated`: CPUs that a newer plan gives to
  /// others are not pinned to.
  base::Result<int> write(const Pins& wanted, Scope scope,
                          const std::function<bool()>& is_outdated) const;
  /// The record of an unpinned domain: every CPU of the node, for each thread.
  base::Result<Pins> unpinned() const;

 private:
  base::Result<std::map<int, policy::CpuSet>> read_vcpus(unsigned flags) const;
  base::Result<std::map<int, policy::CpuSet>> read_iothreads(unsigned flags) const;
  base::Result<policy::CpuSet> read_emulator(unsigned flags) const;

  int pin_vcpu(int number, std::vector<unsigned char>& map, Scope scope) const;

  const Library& library_;
  virDomainPtr domain_;
  int host_cpus_;
};

}  // namespace ka::libvirt
