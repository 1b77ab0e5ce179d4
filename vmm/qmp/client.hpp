// SPDX-License-Identifier: Apache-2.0
// A QMP client that keeps a connection to one QEMU and knows its vCPUs and iothreads.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "vmm/facts/monitor.hpp"

namespace boost::asio {
class io_context;
}

namespace ka::qmp {

/// Between two rounds of queries, however many events cause one.
inline constexpr std::chrono::milliseconds kBetweenRounds{50};

/// The socket that a source named: a VMM's own monitor is never guessed.
std::optional<std::filesystem::path> find_socket(const vmm::Probe& probe);

/// Reports the vCPUs and iothreads after each connection, each refresh() and each event that means
/// that they changed.
class Client final : public vmm::Monitor {
 public:
  /// Refuses what check_qmp_socket() refuses. Connects from within the io_context.
  static base::Result<std::unique_ptr<vmm::Monitor>> start(boost::asio::io_context& io,
                                                           const base::Clock& clock,
                                                           vmm::MonitorOptions options,
                                                           vmm::MonitorHandlers handlers);

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() override;

  /// QEMU has no event for a vCPU that was plugged in: call it when the VMM's threads changed. Not
  /// connected: nothing, a new connection asks anyway.
  void refresh() override;

 private:
  class Connection;
  explicit Client(std::shared_ptr<Connection> connection);

  std::shared_ptr<Connection> connection_;
};

}  // namespace ka::qmp
