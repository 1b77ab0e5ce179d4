// SPDX-License-Identifier: Apache-2.0
// On which NUMA nodes the hardware behind a device file lies.
#pragma once

#include <filesystem>

#include "policy/facts/id_set.hpp"

namespace ka::host {

/// By the number of a device file (/sys/dev, Documentation/ABI/testing/sysfs-dev): that of a
/// device's driver (/dev/nvidia0, /dev/infiniband/uverbs0), of VFIO (/dev/vfio/devices/vfio0), or
/// of an IOMMU group under VFIO (/dev/vfio/12: all of its devices). Empty: it has none, or there is
/// no such hardware. `sys` is where sysfs is mounted.
policy::NodeSet nodes_of_device(const std::filesystem::path& sys, bool block, int major, int minor);

}  // namespace ka::host
