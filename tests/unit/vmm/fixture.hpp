// SPDX-License-Identifier: Apache-2.0
// Short ways to look at a fake node.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/fake_node.hpp"
#include "vmm/threads.hpp"

namespace ka::tests {

inline vmm::Roots roots_of(const FakeNode& node) {
  return {.proc = node.proc(), .debugfs = node.debugfs(), .cgroup = node.cgroup()};
}

/// "vcpu 2", "iothread io1", "emulator", ... by thread id.
inline std::map<int, std::string> roles(const vmm::VmmThreads& found) {
  std::map<int, std::string> by_tid;
  for (const policy::ThreadFacts& thread : found.threads) {
    std::string text(policy::role_name(thread.role));
    if (thread.role == policy::Role::kVcpu) text += ' ' + std::to_string(thread.vcpu_index);
    if (thread.role == policy::Role::kIothread) text += ' ' + thread.name;
    by_tid[thread.key.tid] = text;
  }
  return by_tid;
}

/// Indices and APIC ids ("-" where unknown): "0:0 1:4".
inline std::string vcpus(const vmm::VmmThreads& found) {
  std::string text;
  for (const policy::VcpuFacts& vcpu : found.vcpus) {
    text += (text.empty() ? "" : " ") + std::to_string(vcpu.index) + ':' +
            (vcpu.apic_id ? std::to_string(*vcpu.apic_id) : "-");
  }
  return text;
}

using Roles = std::map<int, std::string>;

}  // namespace ka::tests
