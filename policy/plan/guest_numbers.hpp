// SPDX-License-Identifier: Apache-2.0
// Which number a guest's kernel gives a vCPU, where no agent in the guest reports it. The VMM's
// index, KVM's id and the guest's number differ after hot-plug; what is left is how the VM was
// started, how its kernel counts, and in which order vCPUs were plugged.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "policy/facts/guest.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::policy::plan {

/// How a guest's kernel numbers vCPUs that were not there at its boot (x86).
enum class Numbering {
  kUnknown,
  /// In the order in which it becomes aware of them, and for good: one that is unplugged gets its
  /// number again (allocate_logical_cpuid()). Linux before 6.9.
  kByPlugging,
  /// All that there may ever be get their numbers at boot, by APIC id: a vCPU's number is its
  /// index. Linux since 6.9 (topology_init_possible_cpus()), counted here from 6.10 on to be safe.
  kByApicId
};

/// By a kernel's release ("6.12.36-157"). Unknown for 6.9, for what is no release, and for older
/// ones of a distribution that takes much of later kernels over (".el").
Numbering numbering_of(std::string_view release);

/// Facts about the guest from the VMM's command line or monitor, and the kernel that they name.
struct BootFacts {
  std::optional<int> cold_vcpus;  ///< with which the VM was started
  std::optional<int> max_vcpus;   ///< that it may ever have
  bool plugs_none = false;        ///< this VMM cannot plug vCPUs
  /// vCPUs are plugged from the lowest index up: either way of numbering gives a vCPU its index.
  bool plugs_in_order = false;
  Numbering numbering = Numbering::kUnknown;

  /// A VM that has `vcpus` now may get more.
  bool may_grow(int vcpus) const { return !plugs_none && (!max_vcpus || vcpus < *max_vcpus); }

  bool operator==(const BootFacts&) const = default;
};

/// The vCPUs that were hotplugged into a VM while it was watched.
struct PlugHistory {
  bool from_boot = false;  ///< it was seen before anything was plugged: nothing is missing
  bool is_late = false;    ///< it was not: numbers may have been assigned unseen
  /// In order, by index. Of one group the order is not known: a guest takes those that were plugged
  /// at once from the lowest up.
  std::vector<VcpuSet> groups;
  /// The guest was seen to have all of them online at once: what comes later has later numbers.
  bool complete = false;

  /// With those that were there at boot.
  int size(const BootFacts& boot) const;
  bool operator==(const PlugHistory&) const = default;
};

/// Adds a new observation of the VM.
void record_vcpus(PlugHistory& history, const std::vector<VcpuFacts>& vcpus, const BootFacts& boot);

struct GuestNumbers {
  bool certain = false;
  /// All vCPUs, assumed online; by number. Empty if they are not certain.
  std::vector<GuestCpu> cpus;
  /// vCPUs (hardware ids) that have their numbers among themselves in an order that is not known.
  std::vector<std::vector<std::uint64_t>> unordered;
  GuestCpuSet widest;  ///< every number that any of the vCPUs may have

  bool operator==(const GuestNumbers&) const = default;
};

GuestNumbers guest_numbers(const std::vector<VcpuFacts>& vcpus, const BootFacts& boot,
                           const PlugHistory& history);

}  // namespace ka::policy::plan
