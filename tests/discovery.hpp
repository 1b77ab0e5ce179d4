// SPDX-License-Identifier: Apache-2.0
// Discovery of a VMM's threads in passes of its own.
#pragma once

#include <utility>

#include "base/thread_stats.hpp"
#include "vmm/threads.hpp"

namespace ka::tests {

class Discovery {
 public:
  Discovery(vmm::Roots roots, vmm::Target target)
      : roots_(std::move(roots)), discovery_(roots_, std::move(target)) {}

  base::Result<vmm::VmmThreads> observe(const vmm::MonitorFacts* monitor) {
    base::ThreadStats stats(roots_.proc);
    return discovery_.observe(monitor, stats);
  }
  void forget() { discovery_.forget(); }

 private:
  vmm::Roots roots_;
  vmm::Discovery discovery_;
};

/// One pass, without what an earlier one remembers.
inline base::Result<vmm::VmmThreads> discover(const vmm::Roots& roots, const vmm::Target& target,
                                              const vmm::MonitorFacts* monitor = nullptr) {
  return Discovery(roots, target).observe(monitor);
}

}  // namespace ka::tests
