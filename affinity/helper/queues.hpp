// SPDX-License-Identifier: Apache-2.0
// Queues of the host's network devices: which CPUs take over packets that came (RPS), and which
// send by a queue (XPS; Documentation/networking/scaling.rst). A queue without a mask has the CPU
// of its interrupt, and is left alone. /sys shows those of the host's network namespace alone:
// those of pods are out of reach, and named as one.
#pragma once

#include "affinity/helper/host_masks.hpp"

namespace ka::helper {

class Queues final : public HostMasks {
 public:
  enum class Direction { kReceive, kTransmit };

  Queues(const Roots& roots, Direction direction)
      : directory_(roots.sys / "class/net"), direction_(direction) {}

  std::string_view kind() const override {
    return direction_ == Direction::kReceive ? "receive-queue" : "transmit-queue";
  }
  std::string_view out_of_reach() const override { return "in network namespaces of pods"; }
  base::Result<std::vector<HostMask>> read() const override;
  base::Result<void> write(const HostMask& mask, const policy::CpuSet& cpus) const override;

 private:
  std::filesystem::path file_of(const std::string& name) const;
  void read_device(const std::string& device, std::vector<HostMask>& masks) const;

  std::filesystem::path directory_;
  Direction direction_;
};

}  // namespace ka::helper
