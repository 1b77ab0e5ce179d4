// SPDX-License-Identifier: Apache-2.0
// One connection to the runtime, from registration to its end: takes the mux apart, registers,
// answers what the runtime asks. Bytes are handed in and given out: the socket is the plugin's.
//
// Order (containerd/nri, pkg/adaptation): we send RegisterPlugin while we already serve our lane;
// the runtime answers, calls Configure, then Synchronize (in parts since 0.8), then sends events.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/log/log.hpp"
#include "base/rpc/client.hpp"
#include "base/rpc/server.hpp"
#include "shim-ext/nri/events.hpp"
#include "shim-ext/nri/listener.hpp"
#include "shim-ext/nri/mux.hpp"
#include "shim-ext/nri/translate.hpp"

namespace ka::nri {

/// Under which name the runtime knows us. Plugins with a higher index are called later and see what
/// others adjusted.
struct Identity {
  std::string name = "kata-affinity";
  std::string index = "90";  ///< two digits
};

/// What a session works with; all of it outlives the session.
struct SessionContext {
  boost::asio::io_context& io;
  Translator& translator;
  Listener& listener;
  const log::Log& log;
  const base::Clock& clock;
};

class Session {
 public:
  /// | from         | to            | when                                               |
  /// |--------------|---------------|----------------------------------------------------|
  /// | kRegistering | kRegistered   | RegisterPlugin was answered before Configure came  |
  /// | any          | kConfigured   | Configure                                          |
  /// | any          | kSynchronized | the last part of Synchronize, answered in time     |
  /// | any          | kFailed       | refused, too late, or more than is kept: for good  |
  enum class Stage { kRegistering, kRegistered, kConfigured, kSynchronized, kFailed };

  /// Registers at once. `basic_events`: subscribe only to what every version of NRI knows.
  Session(SessionContext context, const Identity& identity, bool basic_events, rpc::Send send);

  /// False: the peer does not speak NRI; close the connection.
  bool receive(std::string_view bytes);

  /// The loop is at work and has nothing left to do for the connection. Called now and then, it
  /// tells how long a request has waited to be read at most.
  void mark_idle();

  /// Asks the runtime to change containers; only where it accepts updates. `done`: it has answered.
  void update(const Updates& updates, std::function<void()> done);

  Stage stage() const { return stage_; }
  /// Why the stage is kFailed.
  const std::string& failure() const { return failure_; }

 private:
  struct Subject;

  void register_plugin(const Identity& identity);
  void handle(const rpc::Request& request, const rpc::Reply& reply);
  void configure(const rpc::Request& request, const rpc::Reply& reply);
  bool has_room_for(std::size_t items, std::size_t bytes);
  void keep(const proto::nri::PodSandbox& pod);
  bool keep(const proto::nri::Container& container);
  void synchronize(const rpc::Request& request, const rpc::Reply& reply);
  bool is_late(const rpc::Request& request) const;
  Updates synchronizing();
  void state_change(const rpc::Request& request, const rpc::Reply& reply);
  void named_event(Event event, const rpc::Request& request, const rpc::Reply& reply);
  void handle_event(Event event, const Subject& subject, const rpc::Reply& reply);
  rpc::Response create(const Subject& subject, const std::vector<policy::ledger::Event>& events);
  rpc::Response update(const std::vector<policy::ledger::Event>& events);
  std::vector<policy::ledger::Event> reports_of(const EventRule& rule, const Subject& subject);
  std::optional<policy::ledger::Event> container_report(Reported reported, const Subject& subject);

  SessionContext context_;
  bool basic_events_;
  Stage stage_ = Stage::kRegistering;
  std::string failure_;
  std::string runtime_;                       ///< name and version
  bool accepts_updates_ = false;              ///< the runtime can be asked at any time
  base::Clock::Time idle_, idle_before_;      ///< the last two marks
  std::size_t kept_ = 0, kept_bytes_ = 0;     ///< of a Synchronize, as has_room_for() counts
  std::vector<policy::ledger::Event> parts_;  ///< of a Synchronize that is still going on
  std::vector<Described> described_;          ///< the containers in it
  std::set<std::string> sandboxes_;           ///< the pods in it
  Demux demux_;
  rpc::Server plugin_;
  rpc::Client runtime_client_;
};

}  // namespace ka::nri
