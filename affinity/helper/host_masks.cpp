// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/host_masks.hpp"

#include <utility>

#include "affinity/helper/interrupts.hpp"
#include "affinity/helper/irqbalance.hpp"
#include "affinity/helper/queues.hpp"
#include "affinity/helper/units.hpp"
#include "affinity/helper/workqueues.hpp"

namespace ka::helper {

base::Result<std::vector<HostMask>> HostMasks::read_again(const std::vector<HostMask>&) const {
  return read();
}

/// Interrupts that come are routed by the default before they are seen: so it comes before what is
/// there. What waits for another program comes last, and delays nothing: until irqbalance knows, it
/// may write interrupts back, which the next check sees.
AllHostMasks all_host_masks(const Roots& roots, const base::Clock& clock,
                            std::unique_ptr<HostMasks> kernel_threads) {
  AllHostMasks all;
  all.push_back(std::make_unique<NewInterrupts>(roots));
  all.push_back(std::make_unique<Interrupts>(roots));
  all.push_back(std::make_unique<Workqueues>(roots));
  all.push_back(std::move(kernel_threads));
  all.push_back(std::make_unique<Queues>(roots, Queues::Direction::kReceive));
  all.push_back(std::make_unique<Queues>(roots, Queues::Direction::kTransmit));
  all.push_back(std::make_unique<Irqbalance>(roots));
  all.push_back(std::make_unique<Units>(roots, clock));
  return all;
}

}  // namespace ka::helper
