// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/nri/session.hpp"

#include <utility>
#include <variant>

#include "base/text.hpp"
#include "policy/facts/limits.hpp"
#include "shim-ext/proto/nri.pb.h"

namespace ka::nri {
namespace {

namespace wire = proto::nri;
using rpc::Code;

constexpr std::string_view kPluginService = "nri.pkg.api.v1alpha1.Plugin";
constexpr const char* kRuntimeService = "nri.pkg.api.v1alpha1.Runtime";

/// Pods, containers, and the claims that their environments name: a claim's set of CPUs takes up to
/// 50 times the bytes that it is sent in.
constexpr std::size_t kMostSynchronized = policy::kMaxSandboxes + policy::kMaxNodeContainers;
/// Of all parts as they are sent: what is kept of them is less. A full node of 512 pods with long
/// environments and annotations sends a third of it.
constexpr std::size_t kMostSynchronizedBytes = std::size_t{128} << 20;

template <typename Message>
bool parse(Message& message, const std::string& payload) {
  return message.ParseFromString(payload);
}

rpc::Response no_such_message() { return {Code::kInvalidArgument, "malformed request", {}}; }

rpc::Response done() { return {}; }  // all that observers say

rpc::Response refused(const base::Error& error) { return {Code::kUnknown, error.message, {}}; }

void write_sets(const ContainerSets& sets, wire::LinuxResources& resources) {
  resources.mutable_cpu()->set_cpus(policy::format_list(sets.cpus));
  if (!sets.mems.empty()) resources.mutable_cpu()->set_mems(policy::format_list(sets.mems));
}

/// A container that ends meanwhile is no reason for the runtime to fail.
template <typename Response>
void write_updates(const Updates& updates, Response& response) {
  for (const ContainerSets& sets : updates) {
    auto* update = response.add_update();
    update->set_container_id(sets.container);
    update->set_ignore_failure(true);
    write_sets(sets, *update->mutable_linux()->mutable_resources());
  }
}

template <typename Response>
rpc::Response updated(const Updates& updates) {
  Response response;
  write_updates(updates, response);
  return {Code::kOk, {}, response.SerializeAsString()};
}

rpc::Response adjusted(const Adjustment& adjustment) {
  wire::CreateContainerResponse response;
  if (adjustment.sets) {
    write_sets(*adjustment.sets, *response.mutable_adjust()->mutable_linux()->mutable_resources());
  }
  write_updates(adjustment.updates, response);
  for (const auto& [source, destination] : adjustment.mounts) {
    auto* mount = response.mutable_adjust()->add_mounts();
    mount->set_type("bind");
    mount->set_source(source);
    mount->set_destination(destination);
    for (const char* option : {"bind", "ro", "nosuid", "nodev", "noexec"}) {
      mount->add_options(option);
    }
  }
  for (const auto& [name, value] : adjustment.environment) {
    auto* variable = response.mutable_adjust()->add_env();
    variable->set_key(name);
    variable->set_value(value);
  }
  return {Code::kOk, {}, response.SerializeAsString()};
}

rpc::Send lane(std::uint32_t id, rpc::Send send) {
  return [id, send = std::move(send)](const std::string& bytes) { send(mux(id, bytes)); };
}

int pid_of(const wire::PodSandbox& pod, const wire::Container& container) {
  return static_cast<int>(pod.pid() != 0 ? pod.pid() : container.pid());
}

}  // namespace

/// Of what an event reports.
struct Session::Subject {
  const wire::PodSandbox& pod;
  const wire::Container& container;
  const wire::LinuxResources* resources = nullptr;  ///< the new ones, of an update
};

Session::Session(SessionContext context, const Identity& identity, bool basic_events,
                 rpc::Send send)
    : context_(context),
      basic_events_(basic_events),
      idle_(context.clock.now()),
      idle_before_(idle_),
      plugin_(lane(kPluginLane, send), [this](const rpc::Request& request,
                                              const rpc::Reply& reply) { handle(request, reply); }),
      runtime_client_(context.io, lane(kRuntimeLane, std::move(send))) {
  register_plugin(identity);
}

bool Session::receive(std::string_view bytes) {
  return demux_.feed(bytes, [this](std::uint32_t id, std::string_view payload) {
    if (id == kPluginLane) plugin_.receive(payload);
    if (id == kRuntimeLane) runtime_client_.receive(payload);
  });
}

void Session::mark_idle() { idle_before_ = std::exchange(idle_, context_.clock.now()); }

void Session::update(const Updates& updates, std::function<void()> done) {
  wire::UpdateContainersRequest message;
  write_updates(updates, message);
  runtime_client_.call({kRuntimeService, "UpdateContainers", message.SerializeAsString(), {}, {}},
                       [done = std::move(done)](const rpc::Response&) { done(); });
}

void Session::register_plugin(const Identity& identity) {
  wire::RegisterPluginRequest message;
  message.set_plugin_name(identity.name);
  message.set_plugin_idx(identity.index);
  runtime_client_.call({kRuntimeService, "RegisterPlugin", message.SerializeAsString(), {}, {}},
                       [this](const rpc::Response& response) {
                         if (response.code != Code::kOk) {
                           stage_ = Stage::kFailed;
                           failure_ = "the runtime refused the registration: " + response.message;
                         } else if (stage_ == Stage::kRegistering) {
                           stage_ = Stage::kRegistered;
                         }
                       });
}

void Session::handle(const rpc::Request& request, const rpc::Reply& reply) {
  if (stage_ == Stage::kFailed) return;
  const auto start = context_.clock.now();
  if (request.service != kPluginService) return reply(rpc::unimplemented(request));
  if (request.method == "Configure") return configure(request, reply);
  if (request.method == "Synchronize") return synchronize(request, reply);
  if (request.method == "Shutdown") return reply(done());
  // The answer may come when this session is gone.
  const auto timed = [context = context_, method = request.method, reply,
                      start](const rpc::Response& response) {
    reply(response);
    context.listener.answered(method, context.clock.now() - start);
  };
  if (request.method == "StateChange") return state_change(request, timed);
  const auto event = event_of(request.method);
  if (!event) return reply(rpc::unimplemented(request));
  named_event(*event, request, timed);
}

void Session::configure(const rpc::Request& request, const rpc::Reply& reply) {
  wire::ConfigureRequest message;
  if (!parse(message, request.payload)) return reply(no_such_message());
  runtime_ = base::printable(message.runtime_name() + ' ' + message.runtime_version());
  accepts_updates_ = accepts_updates(message.nri_version());
  wire::ConfigureResponse response;
  response.set_events(basic_events_ ? kBasicMask
                                    : event_mask(message.nri_version(), message.runtime_name(),
                                                 message.runtime_version()));
  stage_ = Stage::kConfigured;
  reply({Code::kOk, {}, response.SerializeAsString()});
}

/// The parts of a Synchronize are kept until the last one is there: a runtime for which there is
/// none is given up, and what it reported is forgotten.
bool Session::has_room_for(std::size_t items, std::size_t bytes) {
  kept_ += items;
  kept_bytes_ += bytes;
  if (kept_ <= kMostSynchronized && kept_bytes_ <= kMostSynchronizedBytes) return true;
  stage_ = Stage::kFailed;
  failure_ = "the runtime reports more than " +
             (kept_ > kMostSynchronized
                  ? std::to_string(kMostSynchronized) + " pods, containers and claims"
                  : std::to_string(kMostSynchronizedBytes >> 20) + " MiB of pods and containers");
  parts_ = {};
  described_ = {};
  sandboxes_ = {};
  context_.translator.forget_all();
  return false;
}

/// A part that is not the last is answered with `more` and nothing else, or the runtime drops us.
///
/// A runtime that is answered after its request timed out goes on without the plugin and leaves the
/// connection open (containerd/nri, pkg/adaptation: acceptPluginConnections, as of 0.6 and 0.8): no
/// event would ever come.
void Session::synchronize(const rpc::Request& request, const rpc::Reply& reply) {
  wire::SynchronizeRequest message;
  if (!parse(message, request.payload)) return reply(no_such_message());
  if (stage_ != Stage::kSynchronized && parts_.empty()) context_.translator.forget_all();
  const int reported = message.pods_size() + message.containers_size();
  if (!has_room_for(static_cast<std::size_t>(reported), request.payload.size())) return;
  for (const auto& pod : message.pods()) keep(pod);
  for (const auto& container : message.containers()) {
    if (!keep(container)) return;
  }
  wire::SynchronizeResponse response;
  response.set_more(message.more());
  if (!message.more()) write_updates(synchronizing(), response);
  reply({Code::kOk, {}, response.SerializeAsString()});
  if (message.more()) return;
  if (is_late(request)) {
    stage_ = Stage::kFailed;
    failure_ = "the response to Synchronize was too late for the runtime";
  } else {
    stage_ = Stage::kSynchronized;
    context_.listener.connected(runtime_, accepts_updates_);
  }
  kept_ = kept_bytes_ = 0;
  context_.listener.synchronized(std::exchange(parts_, {}));
}

void Session::keep(const wire::PodSandbox& pod) {
  auto event = context_.translator.pod(pod, static_cast<int>(pod.pid()));
  if (base::is_id(pod.id())) sandboxes_.insert(pod.id());
  if (event) parts_.push_back(std::move(*event));
}

/// False: its claims are more than is kept.
bool Session::keep(const wire::Container& container) {
  if (!context_.translator.is_named(container)) return true;
  auto event = context_.translator.container(container);
  const auto& claims = std::get<policy::ledger::ContainerSeen>(event.body).claims;
  if (claims && !has_room_for(claims->size(), 0)) return false;
  parts_.push_back(std::move(event));
  described_.push_back(context_.translator.described(container));
  return true;
}

/// The request may have come together with the last mark, but not before the one before it.
bool Session::is_late(const rpc::Request& request) const {
  return request.timeout.count() > 0 && context_.clock.now() - idle_before_ >= request.timeout;
}

/// The pod of a container may be in a later part.
Updates Session::synchronizing() {
  auto containers = std::exchange(described_, {});
  for (Described& one : containers) context_.translator.complete(one);
  return context_.listener.synchronizing(containers, std::exchange(sandboxes_, {}));
}

/// How runtimes before 0.12 send all events that cannot be answered with a change.
void Session::state_change(const rpc::Request& request, const rpc::Reply& reply) {
  wire::StateChangeEvent message;
  if (!parse(message, request.payload)) return reply(no_such_message());
  handle_event(static_cast<Event>(message.event()), {message.pod(), message.container(), nullptr},
               reply);
}

/// The calls about pods and containers all begin alike.
void Session::named_event(Event event, const rpc::Request& request, const rpc::Reply& reply) {
  wire::UpdateContainerRequest message;
  if (!parse(message, request.payload)) return reply(no_such_message());
  handle_event(event, {message.pod(), message.container(), &message.linux_resources()}, reply);
}

void Session::handle_event(Event event, const Subject& subject, const rpc::Reply& reply) {
  const EventRule* rule = rule_of(event);
  // An event of a later NRI is answered, too.
  if (rule == nullptr || rule->moment == Moment::kIgnored) return reply(done());
  const auto& [pod, container, resources] = subject;
  const auto events = reports_of(*rule, subject);
  Listener& listener = context_.listener;
  switch (rule->moment) {
    case Moment::kIgnored:
      return;
    case Moment::kCreating:
      return reply(create(subject, events));
    case Moment::kUpdating:
      return reply(update(events));
    case Moment::kStarting:
      return listener.starting(events, context_.translator.described(pod, container),
                               [reply] { reply(done()); });
    case Moment::kStopped:
      reply(updated<wire::StopContainerResponse>(listener.stopped(container.id())));
      return listener.after(events, pod.id());
    case Moment::kBeforeAndAfter:
      listener.before(events);
      break;
    case Moment::kAfter:
      break;
  }
  reply(done());
  listener.after(events, pod.id());
}

rpc::Response Session::create(const Subject& subject,
                              const std::vector<policy::ledger::Event>& events) {
  const auto& [pod, container, resources] = subject;
  const Translator& translator = context_.translator;
  const auto adjustment = context_.listener.creating(
      events, {pod.id(), container.id(), translator.wants_environment(pod),
               translator.described(pod, container)});
  return adjustment ? adjusted(*adjustment) : refused(adjustment.error());
}

rpc::Response Session::update(const std::vector<policy::ledger::Event>& events) {
  const auto& report = std::get<policy::ledger::ContainerSeen>(events.back().body);
  const auto updates = context_.listener.updating(events, report);
  return updates ? updated<wire::UpdateContainerResponse>(*updates) : refused(updates.error());
}

std::vector<policy::ledger::Event> Session::reports_of(const EventRule& rule,
                                                       const Subject& subject) {
  const auto& [pod, container, resources] = subject;
  std::vector<policy::ledger::Event> events;
  if (rule.pod) {
    const bool afresh = rule.moment == Moment::kCreating;
    auto seen = context_.translator.pod(pod, pid_of(pod, container), afresh);
    if (seen) events.push_back(std::move(*seen));
  }
  if (auto report = container_report(rule.container, subject)) {
    if (rule.moment == Moment::kCreating)
      std::get<policy::ledger::ContainerSeen>(report->body).begins = true;
    events.push_back(std::move(*report));
  }
  return events;
}

std::optional<policy::ledger::Event> Session::container_report(Reported reported,
                                                               const Subject& subject) {
  const auto& [pod, container, resources] = subject;
  Translator& translator = context_.translator;
  switch (reported) {
    case Reported::kNothing:
      break;
    case Reported::kSpec:
      return translator.container(container);
    case Reported::kUpdate:
      return resources == nullptr ? translator.container(container)
                                  : translator.updated(container, *resources);
    case Reported::kExited:
      return policy::ledger::Event{policy::ledger::Source::kNri,
                                   policy::ledger::ContainerExited{pod.id(), container.id()}};
    case Reported::kRemoved:
      return policy::ledger::Event{policy::ledger::Source::kNri,
                                   policy::ledger::ContainerGone{pod.id(), container.id()}};
    case Reported::kPodRemoved:
      translator.forget(pod.id());
      return policy::ledger::Event{policy::ledger::Source::kNri, policy::ledger::PodGone{pod.id()}};
  }
  return std::nullopt;
}

}  // namespace ka::nri
