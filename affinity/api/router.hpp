// SPDX-License-Identifier: Apache-2.0
// The API: each call of it, answered from the line. No sockets here.
#pragma once

#include <boost/json/array.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "affinity/api/call.hpp"
#include "affinity/board/drifts.hpp"
#include "affinity/board/notification.hpp"
#include "affinity/board/outcome.hpp"
#include "affinity/line/cpu_interruptions.hpp"
#include "affinity/line/vcpu_waits.hpp"
#include "base/http/feed.hpp"
#include "base/http/message.hpp"
#include "base/result.hpp"
#include "guest-agent/protocol/latency.hpp"

namespace ka::managed {
class Manager;
class Takeover;
}  // namespace ka::managed
namespace ka::line {
class Line;
class Requests;
class Verifier;
}  // namespace ka::line

namespace ka::api {

class Router {
 public:
  /// All must outlive the router. `events` is what GET /v1/events listens to.
  Router(line::Line& line, line::Requests& requests, line::Verifier& verifier, http::Feed& events);

  /// verify queries the sources first: `query` calls what it gets once they have answered. Without
  /// it, what they have reported counts.
  void set_query(std::function<void(std::function<void()>)> query) { query_ = std::move(query); }

  /// Measures in a guest; without it (as at first) no guest is to be had.
  using Measure = std::function<void(const std::string& sandbox, const guest::LatencyRequest&,
                                     std::function<void(base::Result<guest::Latencies>)>)>;
  void set_measure(Measure measure) { measure_ = std::move(measure); }

  /// Null, as at first: kubelet gives containers their CPUs.
  void set_manager(managed::Manager* manager) { manager_ = manager; }
  void set_takeover(const managed::Takeover* takeover) { takeover_ = takeover; }

  /// The user that may send class requests to handle_reads(); 0, as at first: no one.
  void set_annotations_uid(std::uint32_t uid) { annotations_uid_ = uid; }

  /// Never fails: what is wrong with a request is in the answer.
  http::Response handle(const http::Request& request);

  /// The same for clients that may read and verify: what would change anything is refused (403),
  /// but class requests of the user that may send them.
  http::Response handle_reads(const http::Request& request);

  /// The same for the metrics listener, which offers these and the two calls for probes.
  http::Response handle_metrics(const http::Request& request);

  /// Sends a notification to the subscribers of /v1/events; GET /v1/drifts shows those of drift.
  void publish(const board::Notification& notification);

  http::Response list(const Call& call);
  http::Response show(const Call& call);
  http::Response explain(const Call& call);
  http::Response explain_cpu(const Call& call);
  http::Response node(const Call& call);
  http::Response metrics(const Call& call);
  /// The event loop runs.
  http::Response health(const Call& call);
  /// 503 while the daemon waits, after its start, for a source that this node has.
  http::Response readiness(const Call& call);
  http::Response events(const Call& call);
  http::Response drifts(const Call& call);
  http::Response waits(const Call& call);
  http::Response verify(const Call& call);
  http::Response reconcile(const Call& call);
  http::Response release(const Call& call);
  http::Response put_sandbox(const Call& call);
  http::Response delete_sandbox(const Call& call);
  http::Response put_container(const Call& call);
  http::Response delete_container(const Call& call);
  http::Response put_pin(const Call& call);
  http::Response delete_pin(const Call& call);
  http::Response pools(const Call& call);
  http::Response try_takeover(const Call& call);
  http::Response put_class(const Call& call);
  http::Response put_class_request(const Call& call);
  http::Response try_pod(const Call& call);
  http::Response measure(const Call& call);

 private:
  bool is_class_request(const http::Request& request) const;
  boost::json::object show(const line::SandboxView& view) const;
  http::Response submit(const base::Result<policy::ledger::Event>& event);
  http::Response answer_outcome(const base::Result<board::Outcome>& outcome,
                                boost::json::array warnings = {}) const;

  line::Line& line_;
  line::Requests& requests_;
  line::Verifier& verifier_;
  http::Feed& events_;
  std::function<void(std::function<void()>)> query_;
  Measure measure_;
  managed::Manager* manager_ = nullptr;
  const managed::Takeover* takeover_ = nullptr;
  std::uint32_t annotations_uid_ = 0;
  line::VcpuWaits waits_;
  line::CpuInterruptions interruptions_;
  board::Drifts drifts_;
};

}  // namespace ka::api
