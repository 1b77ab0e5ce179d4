// SPDX-License-Identifier: Apache-2.0
// Discovery of a VMM's threads in passes of its own.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/thread_stats.hpp"
#include "vmm/threads.hpp"

namespace ka::tests {

class Discovery {
 public:
  Discovery(vmm::Roots roots, vmm::Target target)
      : roots_(std::move(roots)), discovery_(roots_, std::move(target)) {}

  /// A process that is another sandbox's VMM.
  void add_neighbour(const policy::ProcessId& vmm, const std::string& sandbox) {
    neighbours_[vmm] = sandbox;
  }

  base::Result<vmm::VmmThreads> observe(const vmm::MonitorFacts* monitor) {
    base::ThreadStats stats(roots_.proc);
    return discovery_.observe(monitor, stats, [this](const policy::ProcessId& process) {
      const auto found = neighbours_.find(process);
      return found == neighbours_.end() ? std::string() : found->second;
    });
  }
  void forget() { discovery_.forget(); }

 private:
  vmm::Roots roots_;
  vmm::Discovery discovery_;
  std::map<policy::ProcessId, std::string> neighbours_;
};

/// One pass, without what an earlier one remembers.
inline base::Result<vmm::VmmThreads> discover(const vmm::Roots& roots, const vmm::Target& target,
                                              const vmm::MonitorFacts* monitor = nullptr) {
  return Discovery(roots, target).observe(monitor);
}

}  // namespace ka::tests
