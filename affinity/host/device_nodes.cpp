// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/device_nodes.hpp"

#include <string>
#include <vector>

#include "base/files.hpp"

namespace ka::host {
namespace {

namespace fs = std::filesystem;
using policy::NodeSet;

/// "-1": the platform does not say (drivers/pci/pci-sysfs.c).
void add_node(const fs::path& hardware, NodeSet& nodes) {
  const auto text = base::read_file(hardware / "numa_node");
  const auto node = text ? base::parse_number(*text) : -1;
  if (node && *node >= 0 && *node < policy::kMaxIds) nodes.add(static_cast<int>(*node));
}

/// The group's name where this is the device of one ("../../devices/virtual/vfio/12").
std::string vfio_group(const fs::path& device) {
  const auto link = base::read_link(device);
  const fs::path target = link ? fs::path(*link) : fs::path();
  return target.parent_path().filename() == "vfio" ? target.filename().string() : std::string();
}

}  // namespace

NodeSet nodes_of_device(const fs::path& sys, bool block, int major, int minor) {
  const fs::path device = sys / "dev" / (block ? "block" : "char") /
                          (std::to_string(major) + ':' + std::to_string(minor));
  NodeSet nodes;
  const std::string group = vfio_group(device);
  if (group.empty()) {
    add_node(device / "device", nodes);
    return nodes;
  }
  const fs::path members = sys / "kernel/iommu_groups" / group / "devices";
  const auto ids = base::list_directory(members);
  for (const std::string& id : ids ? *ids : std::vector<std::string>{}) {
    add_node(members / id, nodes);
  }
  return nodes;
}

}  // namespace ka::host
