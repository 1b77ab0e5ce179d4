// SPDX-License-Identifier: Apache-2.0
#include "vmm/monitors/table.hpp"

#include <array>

#include "vmm/clh/api_socket.hpp"
#include "vmm/clh/client.hpp"
#include "vmm/qmp/client.hpp"

namespace ka::vmm {
namespace {

/// The kind that is tried first in front.
constexpr std::array kKinds = {
    MonitorKind{"qmp", qmp::find_socket, qmp::Client::start},
    MonitorKind{"cloud-hypervisor", clh::find_socket, clh::Client::start},
};

}  // namespace

std::optional<FoundMonitor> find_monitor(const Probe& probe) {
  for (const MonitorKind& kind : kKinds) {
    if (auto socket = kind.find_socket(probe)) return FoundMonitor{&kind, std::move(*socket)};
  }
  return std::nullopt;
}

}  // namespace ka::vmm
