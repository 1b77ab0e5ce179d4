// SPDX-License-Identifier: Apache-2.0
// The partitions that were made, and what was added to the cgroups above them.
#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <string>

#include "affinity/helper/realtime_threads.hpp"
#include "base/json/json.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/partition.hpp"

namespace ka::helper {

struct PartitionRecord {
  policy::Partition partition;
  std::string cgroup;             ///< of the VMM: the partition's is in it
  bool enabled = false;           ///< its cpuset controller was off before
  SavedPolicies scheduling = {};  ///< of vCPUs that are real-time threads
  policy::CpuSet giving_up = {};  ///< CPUs that it had before, and may have still

  bool operator==(const PartitionRecord&) const = default;
};

struct PartitionRecords {
  static constexpr const char* kFile = "partitions.json";

  std::map<policy::ThreadKey, PartitionRecord> partitions;  ///< by VMM
  /// By cgroup above a partition: CPUs of its cpuset.cpus.exclusive that are there for partitions.
  std::map<std::string, policy::CpuSet> added;

  /// Masks of kernel threads that the kernel may have overwritten meanwhile: by name.
  std::map<std::string, policy::CpuSet> kernel_masks;

  bool empty() const { return partitions.empty() && added.empty() && kernel_masks.empty(); }
  bool operator==(const PartitionRecords&) const = default;

  void write(boost::json::object& document) const;
  static PartitionRecords read(base::Fields& fields, base::InputError& errors);
};

}  // namespace ka::helper
