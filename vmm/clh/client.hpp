// SPDX-License-Identifier: Apache-2.0
// Queries one Cloud Hypervisor for the vCPUs of its VM, at the start and on request.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/http/query.hpp"
#include "base/result.hpp"
#include "base/rpc/timer.hpp"
#include "vmm/facts/monitor.hpp"

namespace ka::clh {

/// Has a connection only while it asks.
class Client final : public vmm::Monitor {
 public:
  /// Never fails. `io` and `clock` must outlive it.
  static base::Result<std::unique_ptr<vmm::Monitor>> start(boost::asio::io_context& io,
                                                           const base::Clock& clock,
                                                           vmm::MonitorOptions options,
                                                           vmm::MonitorHandlers handlers);

  Client(boost::asio::io_context& io, const base::Clock& clock, vmm::MonitorOptions options,
         vmm::MonitorHandlers handlers);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() override = default;

  void refresh() override;

 private:
  void query_in(std::chrono::milliseconds pause);
  void query();
  void record(const base::Result<http::Response>& response);
  void fail(const base::Error& error);

  boost::asio::io_context& io_;
  const base::Clock& clock_;
  vmm::MonitorOptions options_;
  vmm::MonitorHandlers handlers_;
  base::Backoff backoff_;
  rpc::Timer next_;                   ///< when it asks again
  std::optional<http::Query> query_;  ///< while an answer is awaited
  bool wanted_ = false;               ///< it asks again when it may
};

}  // namespace ka::clh
