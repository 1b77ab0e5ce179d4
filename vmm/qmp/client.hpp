// SPDX-License-Identifier: Apache-2.0
// A QMP client that keeps a connection to one QEMU and knows its vCPUs and iothreads.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "vmm/facts/facts.hpp"
#include "vmm/facts/monitor_options.hpp"

namespace boost::asio {
class io_context;
}

namespace ka::qmp {

/// What a client tells, from within the io_context. An empty function is not called.
struct ClientHandlers {
  /// The vCPUs and iothreads: after each connection, each refresh() and each event that means
  /// that they changed.
  std::function<void(vmm::MonitorFacts)> facts;
  /// Any event: SHUTDOWN, RESET, ... with its data as JSON.
  std::function<void(const std::string& name, const std::string& data)> event;
  /// A connection or a query failed: kUnavailable (nobody there, no answer in time), kGone (no
  /// such socket), kInvalid (it does not speak QMP). The client goes on by itself.
  std::function<void(const base::Error&)> failed;
};

/// Lives in one io_context that one thread runs, and must not outlive it. Once it is destroyed no
/// handler is called any more; a handler may destroy it.
class Client {
 public:
  /// Refuses what vmm::check_qmp_socket() refuses. Connects from within the io_context.
  static base::Result<Client> start(boost::asio::io_context& io, vmm::MonitorOptions options,
                                    ClientHandlers handlers);

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  /// Asks again. QEMU has no event for a vCPU that was plugged in: call it when the VMM's threads
  /// changed. Requests that come while one is answered become one more. Not connected: nothing,
  /// a new connection asks anyway.
  void refresh();

  bool connected() const;

 private:
  class Connection;
  explicit Client(std::shared_ptr<Connection> connection);

  std::shared_ptr<Connection> connection_;
};

}  // namespace ka::qmp
