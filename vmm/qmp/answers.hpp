// SPDX-License-Identifier: Apache-2.0
// What QEMU's answers mean: from JSON to the facts of policy and vmm.
#pragma once

#include <boost/json/fwd.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::qmp {

/// Where a vCPU sits in the guest's topology; -1 where QEMU does not report it.
struct Place {
  int socket = -1;
  int die = -1;
  int cluster = -1;  ///< "cluster-id", or since QEMU 9.1 on x86 "module-id"
  int core = -1;
  int thread = -1;
  int node = -1;

  auto operator<=>(const Place&) const = default;
};

/// One vCPU of query-cpus-fast.
struct Cpu {
  int index = 0;
  int tid = 0;
  std::string qom_path;
  std::optional<Place> place;

  bool operator==(const Cpu&) const = default;
};

/// One place for a vCPU, of query-hotpluggable-cpus; taken when it has a path.
struct Slot {
  Place place;
  std::string qom_path;

  bool operator==(const Slot&) const = default;
};

/// kInvalid when a member is missing, of a wrong type or out of range.
base::Result<std::vector<Cpu>> read_cpus(const boost::json::value& answer);
base::Result<std::vector<Slot>> read_slots(const boost::json::value& answer);
base::Result<std::vector<vmm::MonitorFacts::Iothread>> read_iothreads(
    const boost::json::value& answer);
base::Result<int> read_apic_id(const boost::json::value& answer);

/// Puts the answers together. Cores are numbered through the whole machine, over all slots, so
/// that a number stays when vCPUs come and go. A vCPU without a reported place is a core of its own
/// with its index for a number. `apic_ids` goes by qom path.
vmm::MonitorFacts compose(const std::vector<Cpu>& cpus, const std::vector<Slot>& slots,
                          const std::map<std::string, int>& apic_ids,
                          std::vector<vmm::MonitorFacts::Iothread> iothreads);

}  // namespace ka::qmp
