// SPDX-License-Identifier: Apache-2.0
// Asks one Cloud Hypervisor how many vCPUs its VM has, whenever it is told to.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "vmm/facts/monitor.hpp"

namespace boost::asio {
class io_context;
}

namespace ka::clh {

/// Has a connection only while it asks.
class Client final : public vmm::Monitor {
 public:
  /// Never fails.
  static base::Result<std::unique_ptr<vmm::Monitor>> start(boost::asio::io_context& io,
                                                           vmm::MonitorOptions options,
                                                           vmm::MonitorHandlers handlers);

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() override;

  void refresh() override;

 private:
  class Asker;
  explicit Client(std::shared_ptr<Asker> asker);

  std::shared_ptr<Asker> asker_;
};

}  // namespace ka::clh
