// SPDX-License-Identifier: Apache-2.0
// The NRI plugin: keeps a connection to the runtime, for ever. When it ends (a restart of the
// runtime, a plugin thrown out for being slow), pods run on, and the next connection's Synchronize
// reports what was missed.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/log/log.hpp"
#include "base/rpc/socket.hpp"
#include "base/rpc/timer.hpp"
#include "shim-ext/nri/listener.hpp"
#include "shim-ext/nri/session.hpp"
#include "shim-ext/nri/translate.hpp"

namespace ka::nri {

class Plugin {
 public:
  /// A failed connection is tried again after 0.1 s, then after twice as long, up to this.
  static constexpr std::chrono::milliseconds kLongestPause{2000};

  /// Connects from the loop, not before it runs. All references must outlive the plugin.
  Plugin(boost::asio::io_context& io, std::filesystem::path socket, Identity identity, Probe probe,
         Listener& listener, const log::Log& log, const base::Clock& clock);
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  ~Plugin() = default;

  /// Checks for pods that ended or became VMs without an event, and reports them.
  void poll();

  /// Asks the runtime to change containers; only where it accepts updates. Nothing without a
  /// connection.
  void update(const Updates& updates, std::function<void()> done) {
    if (session_ != nullptr) session_->update(updates, std::move(done));
  }

  /// The runtime registered us and reported all that it has.
  bool synchronized() const {
    return session_ != nullptr && session_->stage() == Session::Stage::kSynchronized;
  }

 private:
  void connect();
  void receive(std::string_view bytes);
  void report_unseen();
  void mark_idle();
  void end(const std::string& reason);
  void learn_from_end();

  boost::asio::io_context& io_;
  std::filesystem::path path_;
  Identity identity_;
  Listener& listener_;
  const log::Log& log_;
  const base::Clock& clock_;
  Translator translator_;
  rpc::Timer timer_;
  rpc::Timer pulse_;  ///< until the runtime has taken us in
  base::Backoff backoff_;
  bool basic_events_ = false;  ///< the runtime refused us with more
  std::string logged_;         ///< the last error: logged once, not every two seconds
  std::map<std::string, std::string> unseen_;  ///< as they were reported
  std::unique_ptr<rpc::Socket> socket_;
  std::unique_ptr<Session> session_;
};

}  // namespace ka::nri
