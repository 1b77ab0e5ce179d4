// SPDX-License-Identifier: Apache-2.0
// The NUMA nodes that libvirt allows for a domain's memory (virsh numatune). It writes them into
// the cpusets of the domain's cgroups, upon which the kernel moves what lies elsewhere at once.
#pragma once

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/plan/domains.hpp"
#include "vmm/libvirt/library.hpp"
#include "vmm/libvirt/pins.hpp"

namespace ka::libvirt {

using MemoryOrder = policy::plan::DomainMemory;

/// One domain's nodes. Calls block; the connection must outlive it.
class Numatune {
 public:
  Numatune(const Library& library, virDomainPtr domain) : library_(library), domain_(domain) {}

  /// Empty where it has none: any.
  base::Result<policy::NodeSet> read(Scope scope) const;

  /// Makes the domain's nodes those of the order; gives the number of calls that this took. A live
  /// domain is left alone whose mode binds nothing ("preferred", "interleave"), and one whose
  /// driver has no such thing.
  base::Result<int> write(const MemoryOrder& order, Scope scope) const;

 private:
  struct Now {
    bool known = false;
    bool binds = true;  ///< the mode is one that can change while the domain runs
    policy::NodeSet nodes;
  };
  base::Result<Now> now(Scope scope) const;

  const Library& library_;
  virDomainPtr domain_;
};

}  // namespace ka::libvirt
