// SPDX-License-Identifier: Apache-2.0
// What the daemon requests of kata-affinity-helper.
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <string>

#include "affinity/line/line.hpp"
#include "affinity/partitions/partitions.hpp"
#include "affinity/power/power.hpp"
#include "affinity/quiet/quiet.hpp"
#include "affinity/quotas/quotas.hpp"
#include "affinity/rdt/rdt.hpp"
#include "base/clock.hpp"

namespace ka::daemon {

class HelperClients {
 public:
  /// `socket`: the helper's; `run`: below it is what it records. The first three must outlive it.
  HelperClients(boost::asio::io_context& io, const base::Clock& clock, line::Line& line,
                const std::filesystem::path& socket, const std::filesystem::path& run)
      : quiet_(io, clock, line.node(), {socket, run}),
        partitions_(io, clock, line.node(), {socket, run},
                    [&line](const std::string& sandbox) { line.refresh(sandbox); }),
        power_(io, clock, line.node(), {socket, run}),
        quotas_(io, clock, line.node(), {socket, run}),
        rdt_(io, clock, line.node(), {socket, run}) {}

  void start() {
    quiet_.start();
    partitions_.start();
    power_.start();
    quotas_.start();
    rdt_.start();
  }
  void refresh() {
    quiet_.refresh();
    partitions_.refresh();
    power_.refresh();
    quotas_.refresh();
    rdt_.refresh();
  }

 private:
  quiet::Quiet quiet_;
  partitions::Partitions partitions_;
  power::Power power_;
  quotas::Quotas quotas_;
  rdt::Rdt rdt_;
};

}  // namespace ka::daemon
