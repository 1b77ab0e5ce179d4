// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/router.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "affinity/api/call.hpp"
#include "affinity/api/encode.hpp"
#include "affinity/api/explain.hpp"
#include "affinity/api/explain_cpu.hpp"
#include "affinity/api/measure.hpp"
#include "affinity/api/metrics.hpp"
#include "affinity/api/path.hpp"
#include "affinity/api/pools.hpp"
#include "affinity/api/quiet.hpp"
#include "affinity/api/requests.hpp"
#include "affinity/api/sources.hpp"
#include "affinity/api/trial.hpp"
#include "affinity/api/tuned.hpp"
#include "affinity/line/line.hpp"
#include "affinity/line/node.hpp"
#include "affinity/line/requests.hpp"
#include "affinity/line/verifier.hpp"
#include "affinity/managed/takeover.hpp"
#include "affinity/messages/events.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "base/version/version.hpp"

namespace ka::api {
namespace {

using base::ErrorCode;
using http::error_response;
using http::Response;

struct Route {
  Pattern pattern;
  Response (Router::*answer)(const Call&);
};

constexpr std::string_view kList[] = {"v1", "sandboxes"};
constexpr std::string_view kSandbox[] = {"v1", "sandboxes", ":sandbox"};
constexpr std::string_view kContainer[] = {"v1", "sandboxes", ":sandbox", "containers",
                                           ":container"};
constexpr std::string_view kPin[] = {"v1", "sandboxes", ":sandbox", "pins", ":role"};
constexpr std::string_view kPinOne[] = {"v1", "sandboxes", ":sandbox", "pins", ":role", ":thread"};
constexpr std::string_view kMeasure[] = {"v1", "sandboxes", ":sandbox", "measure"};
constexpr std::string_view kExplain[] = {"v1", "explain", ":sandbox"};
constexpr std::string_view kExplainCpu[] = {"v1", "explain", "cpu", ":cpu"};
constexpr std::string_view kNode[] = {"v1", "node"};
constexpr std::string_view kVerify[] = {"v1", "verify"};
constexpr std::string_view kReconcile[] = {"v1", "reconcile"};
constexpr std::string_view kRelease[] = {"v1", "release"};
constexpr std::string_view kEvents[] = {"v1", "events"};
constexpr std::string_view kDrifts[] = {"v1", "drifts"};
constexpr std::string_view kWaits[] = {"v1", "waits"};
constexpr std::string_view kPools[] = {"v1", "pools"};
constexpr std::string_view kClass[] = {"v1", "classes", ":sandbox"};
constexpr std::string_view kClassRequest[] = {"v1", "class-requests", ":sandbox"};
constexpr std::string_view kTrials[] = {"v1", "trials"};
constexpr std::string_view kTakeover[] = {"v1", "takeover"};
constexpr std::string_view kMetrics[] = {"metrics"};
constexpr std::string_view kHealth[] = {"healthz"};
constexpr std::string_view kReadiness[] = {"readyz"};

/// The only call that is not a GET and changes nothing.
constexpr std::string_view kVerifyTarget = "/v1/verify";

constexpr std::string_view kClassRequests = "/v1/class-requests/";

/// What the metrics listener serves, which anyone who reaches its port may read.
constexpr std::string_view kPublic[] = {"/metrics", "/healthz", "/readyz"};

constexpr Route kRoutes[] = {
    {{"GET", kList}, &Router::list},
    {{"GET", kSandbox}, &Router::show},
    {{"PUT", kSandbox, "source"}, &Router::put_sandbox},
    {{"DELETE", kSandbox, "source"}, &Router::delete_sandbox},
    {{"PUT", kContainer, "source"}, &Router::put_container},
    {{"DELETE", kContainer, "source"}, &Router::delete_container},
    {{"PUT", kPin}, &Router::put_pin},
    {{"DELETE", kPin}, &Router::delete_pin},
    {{"PUT", kPinOne}, &Router::put_pin},
    {{"DELETE", kPinOne}, &Router::delete_pin},
    {{"POST", kMeasure}, &Router::measure},
    {{"GET", kExplain}, &Router::explain},
    {{"GET", kExplainCpu}, &Router::explain_cpu},
    {{"GET", kNode}, &Router::node},
    {{"POST", kVerify}, &Router::verify},
    {{"POST", kReconcile, "id"}, &Router::reconcile},
    {{"POST", kRelease, "id"}, &Router::release},
    {{"GET", kEvents}, &Router::events},
    {{"GET", kDrifts}, &Router::drifts},
    {{"GET", kWaits}, &Router::waits},
    {{"GET", kPools}, &Router::pools},
    {{"GET", kTakeover}, &Router::try_takeover},
    {{"PUT", kClass}, &Router::put_class},
    {{"PUT", kClassRequest}, &Router::put_class_request},
    {{"POST", kTrials}, &Router::try_pod},
    {{"GET", kMetrics}, &Router::metrics},
    {{"GET", kHealth}, &Router::health},
    {{"GET", kReadiness}, &Router::readiness},
};

Response wrong_method(const Path& path, const std::string& method) {
  std::string allow;
  for (const Route& route : kRoutes) {
    if (!matches(route.pattern, path)) continue;
    allow += (allow.empty() ? "" : ", ") + std::string(route.pattern.method);
  }
  if (allow.empty()) return error_response(404, "no such resource");
  Response response = error_response(405, method + " is not allowed here; use " + allow);
  response.allow = allow;
  return response;
}

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kConflict:
    case ErrorCode::kGone:
      return 409;
    case ErrorCode::kPermission:
      return 403;
    case ErrorCode::kTransient:
    case ErrorCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

Response refuse(const base::Error& error) {
  return error_response(status_of(error.code), error.message);
}

Response not_managed() {
  return error_response(
      409,
      "mode is not \"managed\": kubelet gives containers their CPUs, and `kata-affinityctl "
      "map` shows who has which. For the change see docs/use/managed.md");
}

Response no_sandbox(const std::string& id) {
  return error_response(404, "no sandbox \"" + id + "\"");
}

Response answer(const boost::json::object& object) {
  return {.body = boost::json::serialize(object) + "\n"};
}

}  // namespace

Router::Router(line::Line& line, line::Requests& requests, line::Verifier& verifier,
               http::Feed& events)
    : line_(line),
      requests_(requests),
      verifier_(verifier),
      events_(events),
      waits_(line.node()),
      interruptions_(line.node()) {}

Response Router::answer_outcome(const base::Result<board::Outcome>& outcome,
                                boost::json::array warnings) const {
  if (!outcome) return refuse(outcome.error());
  boost::json::object object = to_json(*outcome);
  for (auto& warning : start_warnings(line_.node())) warnings.push_back(std::move(warning));
  if (!warnings.empty()) object["warnings"] = std::move(warnings);
  return answer(object);
}

Response Router::handle(const http::Request& request) {
  const auto path = parse_target(request.target);
  if (!path) return refuse(path.error());
  for (const Route& route : kRoutes) {
    if (route.pattern.method != request.method || !matches(route.pattern, *path)) continue;
    const auto call = read_call(route.pattern, *path, request);
    return call ? (this->*route.answer)(*call) : refuse(call.error());
  }
  return wrong_method(*path, request.method);
}

Response Router::handle_reads(const http::Request& request) {
  const bool reads =
      request.method == "GET" || (request.method == "POST" && request.target == kVerifyTarget);
  if (reads || is_class_request(request)) return handle(request);
  return error_response(403, base::printable(request.method) +
                                 " is refused on this socket, which accepts GET and POST " +
                                 std::string(kVerifyTarget) +
                                 " only; changes go to the daemon's own socket, as root");
}

Response Router::handle_metrics(const http::Request& request) {
  if (std::ranges::find(kPublic, request.target) != std::end(kPublic)) return handle(request);
  return error_response(404, "only /metrics, /healthz and /readyz are served here");
}

/// Of the only user that may send them here.
bool Router::is_class_request(const http::Request& request) const {
  return request.method == "PUT" && request.target.starts_with(kClassRequests) && request.peer &&
         annotations_uid_ != 0 && request.peer->uid == annotations_uid_;
}

void Router::publish(const board::Notification& notification) {
  drifts_.record(notification);
  if (events_.has_listeners()) events_.publish(serialize(to_json(notification)) + "\n");
}

boost::json::object Router::show(const line::SandboxView& view) const {
  boost::json::object sandbox = to_json(view);
  sandbox["interruptions"] = interruptions_to_json(line_.node(), interruptions_, view.pod.id);
  return sandbox;
}

Response Router::list(const Call&) {
  interruptions_.read();
  std::string body = R"({"sandboxes":[)";
  std::string_view comma;
  for (const std::string& id : line_.node().sandbox_ids()) {
    const auto view = line_.node().view(id);
    if (!view) continue;
    body.append(comma).append(serialize(show(*view)));
    comma = ",";
  }
  return {.body = body + "],\"version\":" + serialize(boost::json::value(version::number())) +
                  ",\"sources\":" + serialize(sources_to_json(line_.node().board)) +
                  ",\"contests\":" + serialize(contests_to_json(line_.node())) +
                  ",\"pods\":" + serialize(quiet_pods_to_json(line_.node())) +
                  ",\"tuned\":" + serialize(tuned_to_json(line_.node())) +
                  ",\"start\":" + serialize(start_to_json(line_.node())) + "}\n"};
}

Response Router::show(const Call& call) {
  const auto view = line_.node().view(call.sandbox);
  if (!view) return no_sandbox(call.sandbox);
  interruptions_.read();
  return answer(show(*view));
}

Response Router::explain(const Call& call) {
  const auto view = line_.node().view(call.sandbox);
  return view ? answer(api::explain(line_.node(), *view)) : no_sandbox(call.sandbox);
}

Response Router::explain_cpu(const Call& call) {
  const auto cpu = base::parse_number(call.cpu);
  if (!cpu || *cpu < 0) return error_response(400, "cpu: must be the number of a CPU");
  if (*cpu >= policy::kMaxIds || !line_.node().topology.all().contains(static_cast<int>(*cpu)))
    return error_response(404, "this machine has no CPU " + std::to_string(*cpu));
  return answer(api::explain_cpu(line_.node(), static_cast<int>(*cpu)));
}

Response Router::node(const Call&) {
  interruptions_.read();
  return answer(node_to_json(line_.node(), interruptions_));
}

Response Router::metrics(const Call&) {
  interruptions_.read();
  return {.content_type = kMetricsType,
          .body = metrics_text(line_.node(), waits_, interruptions_.totals())};
}

Response Router::health(const Call&) { return answer({{"status", "ok"}}); }

Response Router::readiness(const Call&) {
  const policy::ledger::StartGate& gate = line_.node().gate();
  if (gate.phase() == policy::ledger::StartGate::Phase::kWaiting) {
    return error_response(503, messages::waiting_text(gate));
  }
  return answer({{"status", "ready"}});
}

Response Router::events(const Call&) {
  return {.content_type = "application/x-ndjson", .feed = &events_};
}

Response Router::drifts(const Call&) {
  boost::json::array drifts;
  for (const board::Notification& drift : drifts_.all()) drifts.push_back(to_json(drift));
  return answer({{"drifts", std::move(drifts)}});
}

Response Router::waits(const Call&) { return answer(waits_to_json(line_.node())); }

Response Router::verify(const Call&) {
  if (!query_) return answer(verified(verifier_, manager_));
  return {.later = [this](auto respond) {
    query_(
        [this, respond = std::move(respond)] { respond(answer(verified(verifier_, manager_))); });
  }};
}

Response Router::measure(const Call& call) {
  const auto view = line_.node().view(call.sandbox);
  if (!view) return no_sandbox(call.sandbox);
  auto request = read_measure(*view, call.body);
  if (!request) return refuse(request.error());
  if (!measure_) return error_response(503, "guests are not asked yet");
  return {.later = [this, id = call.sandbox, request = std::move(*request)](auto respond) {
    measure_(id, request, [this, id, request, respond = std::move(respond)](auto result) {
      const auto now = line_.node().view(id);
      if (!result) return respond(refuse(result.error()));
      if (!now) return respond(no_sandbox(id));
      respond(answer(to_json(*now, request, *result)));
    });
  }};
}

Response Router::reconcile(const Call& call) {
  const auto done = call.only.empty() ? line_.reconcile_all() : requests_.reconcile(call.only);
  return answer_outcome(done, inert_settings(line_.node().options));
}

Response Router::release(const Call& call) {
  return answer_outcome(call.only.empty() ? line_.release_all() : requests_.release(call.only));
}

Response Router::submit(const base::Result<policy::ledger::Event>& event) {
  return event ? answer_outcome(requests_.submit(*event)) : refuse(event.error());
}

Response Router::put_sandbox(const Call& call) {
  auto event = read_sandbox(call.source, call.sandbox, call.body);
  const bool names_domain = event && !std::get<policy::ledger::PodSeen>(event->body).domain.empty();
  if (names_domain && !line_.node().board.sources().contains(policy::ledger::Source::kLibvirt)) {
    return submit(
        base::fail(ErrorCode::kInvalid, "domain: libvirt is not configured (libvirt_uri)"));
  }
  return submit(event);
}

Response Router::delete_sandbox(const Call& call) {
  return submit(policy::ledger::Event{call.source, policy::ledger::PodGone{call.sandbox}});
}

Response Router::put_container(const Call& call) {
  return submit(read_container(call.source, call.sandbox, call.container, call.body));
}

Response Router::delete_container(const Call& call) {
  return submit(policy::ledger::Event{call.source,
                                      policy::ledger::ContainerGone{call.sandbox, call.container}});
}

Response Router::put_pin(const Call& call) {
  return submit(read_pin(call.sandbox, call.role, call.thread, call.body, call.peer));
}

Response Router::delete_pin(const Call& call) {
  return submit(read_unpin(call.sandbox, call.role, call.thread));
}

Response Router::pools(const Call&) {
  return manager_ == nullptr ? not_managed() : answer(pools_to_json(*manager_));
}

Response Router::try_takeover(const Call&) {
  if (takeover_ == nullptr) {
    return refuse(
        {base::ErrorCode::kConflict,
         manager_ != nullptr
             ? "mode is \"managed\" already"
             : "this daemon took back what mode = \"managed\" gave to containers; restart "
               "it, and try again"});
  }
  const auto trial = takeover_->trial(line_.node().topology);
  return trial ? answer(to_json(*trial)) : refuse(trial.error());
}

Response Router::put_class(const Call& call) {
  if (manager_ == nullptr) return not_managed();
  const auto changed = change_class(*manager_, call.sandbox, call.body);
  return changed ? answer(pools_to_json(*manager_)) : refuse(changed.error());
}

Response Router::put_class_request(const Call& call) {
  if (manager_ == nullptr) return not_managed();
  const auto done = request_class(*manager_, call.sandbox, call.body);
  return done ? answer(pools_to_json(*manager_)) : refuse(done.error());
}

Response Router::try_pod(const Call& call) {
  if (manager_ == nullptr) return not_managed();
  const auto containers = read_trial(call.body);
  return containers ? answer(to_json(manager_->try_pod(*containers))) : refuse(containers.error());
}

}  // namespace ka::api
