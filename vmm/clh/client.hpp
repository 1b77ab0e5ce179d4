// SPDX-License-Identifier: Apache-2.0
// Asks one Cloud Hypervisor how many vCPUs its VM has, whenever it is told to.
#pragma once

#include <functional>
#include <memory>

#include "base/result.hpp"
#include "vmm/facts/facts.hpp"
#include "vmm/facts/monitor_options.hpp"

namespace boost::asio {
class io_context;
}

namespace ka::clh {

/// What a client tells, from within the io_context. An empty function is not called.
struct ClientHandlers {
  /// After each refresh(), and once after the start.
  std::function<void(vmm::MonitorFacts)> facts;
  /// kUnavailable (nobody there, no VM yet, no answer in time), kGone (no such socket), kInvalid
  /// (it answers something else). The client goes on by itself.
  std::function<void(const base::Error&)> failed;
};

/// Has a connection only while it asks. Lives in one io_context that one thread runs, and must not
/// outlive it. Once it is destroyed no handler is called any more; a handler may destroy it.
class Client {
 public:
  static Client start(boost::asio::io_context& io, vmm::MonitorOptions options,
                      ClientHandlers handlers);

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  /// Asks again. Requests that come while one is answered become one more.
  void refresh();

 private:
  class Asker;
  explicit Client(std::shared_ptr<Asker> asker);

  std::shared_ptr<Asker> asker_;
};

}  // namespace ka::clh
