// SPDX-License-Identifier: Apache-2.0
// The VMMs that are known by the names of their programs and threads: one row each.
#pragma once

#include <span>
#include <string_view>

namespace ka::vmm {

/// The name of a vCPU's thread: this, the vCPU's index, and that.
struct VcpuName {
  std::string_view prefix;
  std::string_view suffix = {};
};

/// The name of a thread that serves a device's queue: this and a number, and where there is a
/// second part that and another number.
struct QueueName {
  std::string_view prefix;
  std::string_view second = {};
};

struct KnownVmm {
  std::string_view name;
  /// Programs that are nothing but this VMM, each by how its name begins.
  std::span<const std::string_view> programs;
  std::span<const VcpuName> vcpus;
  std::span<const QueueName> queues = {};
  /// Its other threads, each by how its name begins.
  std::span<const std::string_view> emulators = {};
};

std::span<const KnownVmm> known_vmms();

/// Whether a program of this name (without its path) is nothing but a known VMM.
bool is_vmm_program(std::string_view name);

}  // namespace ka::vmm
