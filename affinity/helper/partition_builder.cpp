// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/partition_builder.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "affinity/helper/exclusive_cpus.hpp"
#include "affinity/helper/partition_state.hpp"
#include "affinity/host/cgroup_names.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;
using policy::CpuSet;
using policy::Partition;
using policy::ThreadKey;

constexpr const char* kUnrecorded = "it cannot be recorded";

/// Of a container's.
std::string_view kind_of(const Partition& wanted) {
  return wanted.is_unbalanced ? kIsolated : kRoot;
}

/// By reading alone: the container's cgroup allows these CPUs and no others.
Result<void> check_container(const CgroupTree& tree, const std::string& container,
                             const CpuSet& cpus) {
  const auto configured = read_cpus(tree, container, "cpuset.cpus");
  if (is_gone(configured)) {
    return base::fail(ErrorCode::kUnavailable, "its cgroup has no cpuset");
  }
  if (!configured) return unexpected(configured.error());
  if (*configured == cpus) return {};
  return base::fail(ErrorCode::kConflict,
                    "its cgroup allows CPUs " + policy::format_list(*configured));
}

}  // namespace

PartitionBuilder::PartitionBuilder(CgroupTree& tree, const Scheduling& scheduling,
                                   VmmThreads threads, PartitionRecords& records,
                                   KernelMaskGuard& guard, std::function<bool()> save)
    : tree_(tree),
      threads_(std::move(threads)),
      realtime_(scheduling, threads_),
      records_(records),
      guard_(guard),
      save_(std::move(save)) {}

// --- find

Result<std::string> PartitionBuilder::find_cgroup(const Partition& wanted) const {
  auto cgroup = find_home(wanted);
  if (!cgroup) return cgroup;
  for (const auto& [vmm, record] : records_.partitions) {
    if (vmm != wanted.vmm && record.cgroup == *cgroup) {
      return base::fail(ErrorCode::kConflict, "its cgroup has another partition");
    }
  }
  const auto fits = check_cgroup(wanted, *cgroup);
  return fits ? cgroup : unexpected(fits.error());
}

Result<std::string> PartitionBuilder::find_home(const Partition& wanted) const {
  auto checked = threads_.check_identity(wanted.vmm);
  if (checked && !wanted.of_container) checked = check_vcpus(wanted);
  auto home = checked ? tree_.home(wanted.vmm) : unexpected(checked.error());
  if (!home) return home;
  if (!wanted.of_container) {
    if (*home != "/") return home;
    return base::fail(ErrorCode::kConflict, "the VMM has no cgroup of its own");
  }
  std::string container = host::container_around(*home);
  if (!container.empty()) return container;
  return base::fail(ErrorCode::kConflict, "it is in no cgroup of a container");
}

/// A process without a vCPU is no VMM, whoever says so.
Result<void> PartitionBuilder::check_vcpus(const Partition& wanted) const {
  bool has_one = false;
  for (const ThreadKey& vcpu : wanted.vcpus) {
    auto checked = threads_.check(vcpu);
    if (!checked && !is_gone(checked)) return checked;
    has_one |= checked.has_value();
  }
  if (has_one) return {};
  return base::fail(ErrorCode::kConflict, "none of its vCPUs is there");
}

/// All that can be known before anything is written.
Result<void> PartitionBuilder::check_cgroup(const Partition& wanted,
                                            const std::string& cgroup) const {
  if (wanted.of_container) {
    const auto checked = check_container(tree_, cgroup, wanted.cpus);
    const auto above =
        checked ? find_lacking(tree_, cgroup, wanted.cpus) : unexpected(checked.error());
    return above ? Result<void>() : unexpected(above.error());
  }
  const PartitionCgroup partition(tree_, cgroup);
  const auto room = partition.room_beside(wanted.cpus);
  if (is_gone(room)) return base::fail(ErrorCode::kUnavailable, "its cgroup has no cpuset");
  if (!room) return unexpected(room.error());
  if (room->empty()) {
    return base::fail(ErrorCode::kConflict,
                      "its cgroup allows no other CPUs, which the VMM's other threads need "
                      "(cgroup = \"manage\" gives them the shared pool)");
  }
  const auto lacking = find_lacking(tree_, cgroup, wanted.cpus);
  const auto exists = lacking ? partition.exists() : unexpected(lacking.error());
  if (!exists) return unexpected(exists.error());
  if (!*exists || records_.partitions.contains(wanted.vmm)) return {};
  return base::fail(ErrorCode::kConflict,
                    "there is a cgroup " + partition.path() + " that the helper has not made");
}

// --- make

Result<void> PartitionBuilder::make(const Partition& wanted, const std::string& cgroup) {
  auto done = wanted.of_container ? make_of_container(wanted, cgroup) : make_of_vmm(wanted, cgroup);
  if (done) records_.partitions.at(wanted.vmm).giving_up = {};
  return done;
}

/// Threads are in it before it is a partition: they keep their CPUs all the way.
Result<void> PartitionBuilder::make_of_vmm(const Partition& wanted, const std::string& cgroup) {
  const PartitionCgroup partition(tree_, cgroup);
  const auto is_enabled = partition.is_enabled();
  if (!is_enabled) return unexpected(is_enabled.error());
  auto done = record(wanted, cgroup, *is_enabled);
  if (done && !*is_enabled) done = partition.enable();
  if (done) done = end_realtime(wanted);
  if (done) done = partition.make();
  if (done) done = place(wanted, partition);
  if (done) done = add_cpus(cgroup, wanted.cpus);
  return done ? isolate(wanted, partition) : done;
}

bool PartitionBuilder::is_made(const Partition& wanted, const std::string& cgroup) const {
  if (wanted.of_container) return is_partition(tree_, cgroup, kind_of(wanted), wanted.cpus);
  const PartitionCgroup partition(tree_, cgroup);
  return partition.is_isolated(wanted.cpus) &&
         std::ranges::all_of(wanted.vcpus, [&](const ThreadKey& vcpu) {
           const auto home = tree_.home(vcpu);
           return !home || *home == partition.path();
         });
}

Result<void> PartitionBuilder::isolate(const Partition& wanted, const PartitionCgroup& partition) {
  if (partition.is_isolated(wanted.cpus)) return {};
  const auto remembered = remember_masks();
  return remembered ? partition.isolate(wanted.cpus) : remembered;
}

/// Its processes are there already.
Result<void> PartitionBuilder::make_of_container(const Partition& wanted,
                                                 const std::string& cgroup) {
  auto done = record(wanted, cgroup, true);
  if (done) done = add_cpus(cgroup, wanted.cpus);
  const std::string_view kind = kind_of(wanted);
  if (!done || is_partition(tree_, cgroup, kind, wanted.cpus)) return done;
  done = remember_masks();
  return done ? make_partition(tree_, cgroup, kind, wanted.cpus) : done;
}

Result<void> PartitionBuilder::remember_masks() {
  if (auto read = guard_.remember(); !read) return read;
  if (guard_.record()) return {};
  return base::fail(ErrorCode::kTransient, kUnrecorded);
}

Result<void> PartitionBuilder::record(const Partition& wanted, const std::string& cgroup,
                                      bool was_enabled) {
  PartitionRecord fresh{wanted, cgroup, !was_enabled};
  std::optional<PartitionRecord> before;
  const auto known = records_.partitions.find(wanted.vmm);
  if (known != records_.partitions.end()) {
    before = known->second;
    fresh.enabled |= before->enabled;
    fresh.scheduling = before->scheduling;
    fresh.giving_up = (before->partition.cpus | before->giving_up) - wanted.cpus;
    if (*before == fresh) return {};
  }
  records_.partitions[wanted.vmm] = std::move(fresh);
  if (save_()) return {};
  if (before) {
    records_.partitions[wanted.vmm] = *std::move(before);
  } else {
    records_.partitions.erase(wanted.vmm);
  }
  return base::fail(ErrorCode::kTransient, kUnrecorded);
}

/// Threads that vCPUs have started are where these are, and do not belong there.
Result<void> PartitionBuilder::place(const Partition& wanted,
                                     const PartitionCgroup& partition) const {
  for (const ThreadKey& vcpu : wanted.vcpus) {
    auto done = place(vcpu, records_.partitions.at(wanted.vmm).cgroup, partition);
    if (!done && !is_gone(done)) return done;
  }
  const auto inside = partition.threads();
  if (!inside) return unexpected(inside.error());
  for (const int tid : *inside) {
    if (std::ranges::count(wanted.vcpus, tid, &ThreadKey::tid) > 0) continue;
    if (auto done = partition.move_out(tid); !done) return done;
  }
  return {};
}

/// The kernel takes only threads of processes in the VMM's cgroup: one that has the number by now
/// is another of these, or is refused. libvirt has each vCPU in a cgroup of its own.
Result<void> PartitionBuilder::place(const ThreadKey& vcpu, const std::string& cgroup,
                                     const PartitionCgroup& partition) const {
  if (auto checked = threads_.check(vcpu); !checked) return checked;
  const auto home = tree_.home(vcpu);
  if (!home) return unexpected(home.error());
  if (*home == partition.path()) return {};
  if (*home != cgroup) {
    return base::fail(ErrorCode::kConflict, "its vCPUs are in other cgroups than the VMM");
  }
  auto done = partition.move_in(vcpu);
  if (done && !threads_.check_identity(vcpu)) done = partition.move_out(vcpu.tid);
  return done;
}

Result<void> PartitionBuilder::add_cpus(const std::string& cgroup, const CpuSet& cpus) {
  const auto lacking = find_lacking(tree_, cgroup, cpus);
  if (!lacking) return unexpected(lacking.error());
  if (lacking->empty()) return {};
  for (const LackingCpus& one : *lacking) records_.added[one.cgroup] |= one.lacking;
  if (!save_()) return base::fail(ErrorCode::kTransient, kUnrecorded);
  for (const LackingCpus& one : *lacking) {
    auto done = write_cpus(tree_, one.cgroup, kExclusiveFile, one.now | one.lacking);
    if (!done) return done;
  }
  return {};
}

Result<void> PartitionBuilder::make_realtime(const Partition& wanted) {
  if (wanted.priority == 0) return {};
  SavedPolicies& saved = records_.partitions.at(wanted.vmm).scheduling;
  return realtime_.make(wanted, saved, save_);
}

/// A thread is no real-time thread any more before it leaves the partition.
Result<void> PartitionBuilder::end_realtime(const Partition& wanted) {
  return realtime_.restore(
      records_.partitions.at(wanted.vmm).scheduling, [&](const ThreadKey& thread) {
        return wanted.priority > 0 && std::ranges::count(wanted.vcpus, thread) > 0;
      });
}

// --- undo

/// Also where masks cannot be recorded now: a full disk is no reason to keep the CPUs.
Result<void> PartitionBuilder::undo(PartitionRecord& record) {
  const PartitionCgroup partition(tree_, record.cgroup);
  auto done = realtime_.restore(record.scheduling, [](const ThreadKey&) { return false; });
  if (!done) return done;
  if (auto read = guard_.remember(); !read) return read;
  (void)guard_.record();
  done = record.partition.of_container ? end_partition(tree_, record.cgroup) : partition.remove();
  if (done && record.enabled) done = partition.disable();
  return is_gone(done) ? Result<void>() : done;
}

}  // namespace ka::helper
