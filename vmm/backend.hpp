// SPDX-License-Identifier: Apache-2.0
// A backend inspects a VMM in one way and claims the roles of some of its threads. Claims are
// merged in the order of trust (merge.hpp).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/trouble.hpp"
#include "policy/facts/sandbox.hpp"
#include "vmm/facts/facts.hpp"
#include "vmm/procfs/kvm_fds.hpp"
#include "vmm/procfs/thread_list.hpp"

namespace ka::vmm {

struct Claim {
  int tid = 0;
  policy::Role role = policy::Role::kVcpu;
  std::optional<int> index;    ///< of a vCPU
  std::optional<int> apic_id;  ///< of a vCPU
  std::string iothread;        ///< an iothread's id

  bool operator==(const Claim&) const = default;
};

struct Claims {
  std::vector<Claim> list;
  std::string source;           ///< name of the backend in messages
  std::size_t vcpus_there = 0;  ///< vCPUs that the VM has, with known threads or not; 0: unknown
};

/// Input of a backend. The monitor may be null.
struct ProbeContext {
  const Roots& roots;
  const SeenProcess& vmm;
  const OpenFds& fds;
  const MonitorFacts* monitor = nullptr;
  base::Trouble& trouble;  ///< what could not be read
};

/// One entry of the table.
struct Backend {
  std::string_view name;
  Claims (*read)(const ProbeContext&);
};

/// The table, the most trustworthy first.
std::span<const Backend> backend_table();

}  // namespace ka::vmm
