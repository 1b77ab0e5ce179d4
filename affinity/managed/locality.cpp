// SPDX-License-Identifier: Apache-2.0
#include "affinity/managed/locality.hpp"

#include <utility>

#include "affinity/host/device_nodes.hpp"
#include "affinity/host/node_memory.hpp"

namespace ka::managed {

namespace fs = std::filesystem;
using policy::managed::kOrdinaryPage;
using policy::managed::MemoryRoom;
using policy::managed::Needs;

void add_room(const fs::path& sys, const Needs& needs, MemoryRoom& room) {
  for (const auto& [page, bytes] : needs.memory) {
    if (room.contains(page)) continue;
    room[page] = {
        .free = page == kOrdinaryPage ? host::available_memory(sys) : host::free_memory(sys, page),
        .total = host::total_memory(sys, page)};
  }
}

policy::managed::Locality read_locality(const fs::path& sys, const nri::Described& container) {
  policy::managed::Locality locality{
      .needs = container.needs, .pod = container.pod, .room = {}, .bindable = container.outside_vm};
  for (const nri::DeviceNumber& device : container.devices) {
    auto nodes = host::nodes_of_device(sys, device.block, device.major, device.minor);
    if (nodes.empty()) continue;
    locality.pod.needs.devices.push_back(nodes);
    locality.needs.devices.push_back(std::move(nodes));
  }
  add_room(sys, locality.needs, locality.room);
  add_room(sys, locality.pod.needs, locality.room);
  return locality;
}

}  // namespace ka::managed
