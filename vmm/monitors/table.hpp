// SPDX-License-Identifier: Apache-2.0
// The monitors that VMMs have, and how each is found and started. A new VMM's is one row.
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "vmm/facts/monitor.hpp"

namespace ka::vmm {

/// One entry of the table.
struct MonitorKind {
  std::string_view name;
  /// The socket of the VMM's monitor; absent when the VMM has none of this kind, or not yet.
  std::optional<std::filesystem::path> (*find_socket)(const Probe&);
  /// Connects from within the io_context. kInvalid: the socket must not be used.
  base::Result<std::unique_ptr<Monitor>> (*start)(boost::asio::io_context&, const base::Clock&,
                                                  MonitorOptions, MonitorHandlers);
};

/// A monitor that can be started.
struct FoundMonitor {
  const MonitorKind* kind = nullptr;
  std::filesystem::path socket;
};

/// The first kind of monitor that the VMM has.
std::optional<FoundMonitor> find_monitor(const Probe& probe);

}  // namespace ka::vmm
