// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/device_nodes.hpp"

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using policy::NodeSet;

TEST_CASE("a device file's nodes are those of the hardware behind it") {
  const tests::TempDir dir;
  const auto sys = dir.path() / "sys";
  dir.write("sys/devices/pci0/0000:01:00.0/numa_node", "1\n");
  dir.write("sys/devices/pci0/0000:02:00.0/numa_node", "-1\n");
  dir.write("sys/devices/pci0/0000:03:00.0/numa_node", "3\n");
  dir.link("sys/devices/pci0/0000:01:00.0/nvme/nvme0/device", "../../../0000:01:00.0");
  dir.link("sys/dev/block/259:0", "../../devices/pci0/0000:01:00.0/nvme/nvme0");
  dir.link("sys/dev/char/195:0/device", "../../../devices/pci0/0000:02:00.0");
  std::filesystem::create_directories(sys / "devices/virtual/vfio/12");
  dir.link("sys/dev/char/243:0", "../../devices/virtual/vfio/12");
  dir.link("sys/kernel/iommu_groups/12/devices/0000:01:00.0",
           "../../../../devices/pci0/0000:01:00.0");
  dir.link("sys/kernel/iommu_groups/12/devices/0000:03:00.0",
           "../../../../devices/pci0/0000:03:00.0");
  CHECK(host::nodes_of_device(sys, true, 259, 0) == NodeSet{1});
  CHECK(host::nodes_of_device(sys, false, 195, 0).empty());
  CHECK(host::nodes_of_device(sys, false, 243, 0) == NodeSet{1, 3});
  CHECK(host::nodes_of_device(sys, false, 1, 3).empty());
}
