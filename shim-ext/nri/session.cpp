// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/nri/session.hpp"

#include <utility>

#include "base/text.hpp"
#include "policy/facts/limits.hpp"
#include "shim-ext/proto/nri.pb.h"

namespace ka::nri {
namespace {

namespace wire = proto::nri;
using rpc::Code;

constexpr std::string_view kPluginService = "nri.pkg.api.v1alpha1.Plugin";
constexpr const char* kRuntimeService = "nri.pkg.api.v1alpha1.Runtime";

constexpr std::size_t kMostSynchronized = policy::kMaxSandboxes + policy::kMaxNodeContainers;

template <typename Message>
bool parse(Message& message, const std::string& payload) {
  return message.ParseFromString(payload);
}

rpc::Response no_such_message() {
  return {Code::kInvalidArgument, "the request cannot be read", {}};
}

rpc::Response done() { return {}; }  // all that observers say

rpc::Response adjusted(const Adjustment& adjustment) {
  wire::CreateContainerResponse response;
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

/// Of what an event tells.
struct Session::Subject {
  const wire::PodSandbox& pod;
  const wire::Container& container;
  const wire::LinuxResources* resources = nullptr;  ///< the new ones, of an update
};

Session::Session(Surroundings surroundings, const Identity& identity, bool basic_events,
                 rpc::Send send)
    : around_(surroundings),
      basic_events_(basic_events),
      plugin_(lane(kPluginLane, send), [this](const rpc::Request& request,
                                              const rpc::Reply& reply) { handle(request, reply); }),
      runtime_client_(surroundings.io, lane(kRuntimeLane, std::move(send))) {
  register_plugin(identity);
}

bool Session::receive(std::string_view bytes) {
  return demux_.feed(bytes, [this](std::uint32_t id, std::string_view payload) {
    if (id == kPluginLane) plugin_.receive(payload);
    if (id == kRuntimeLane) runtime_client_.receive(payload);
  });
}

void Session::register_plugin(const Identity& identity) {
  wire::RegisterPluginRequest message;
  message.set_plugin_name(identity.name);
  message.set_plugin_idx(identity.index);
  runtime_client_.call({kRuntimeService, "RegisterPlugin", message.SerializeAsString(), {}, {}},
                       [this](const rpc::Response& response) {
                         if (response.code != Code::kOk) {
                           stage_ = Stage::kFailed;
                           failure_ = "the runtime refused us: " + response.message;
                         } else if (stage_ == Stage::kRegistering) {
                           stage_ = Stage::kRegistered;
                         }
                       });
}

void Session::handle(const rpc::Request& request, const rpc::Reply& reply) {
  if (stage_ == Stage::kFailed) return;
  const auto start = around_.clock.now();
  if (request.service != kPluginService) return reply(rpc::unimplemented(request));
  if (request.method == "Configure") return configure(request, reply);
  if (request.method == "Synchronize") return synchronize(request, reply);
  if (request.method == "Shutdown") return reply(done());
  // The answer may come when this session is gone.
  const auto timed = [around = around_, method = request.method, reply,
                      start](const rpc::Response& response) {
    reply(response);
    around.listener.answered(method, around.clock.now() - start);
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
  wire::ConfigureResponse response;
  response.set_events(basic_events_ ? kBasicMask
                                    : event_mask(message.nri_version(), message.runtime_name(),
                                                 message.runtime_version()));
  stage_ = Stage::kConfigured;
  reply({Code::kOk, {}, response.SerializeAsString()});
}

/// The parts of a Synchronize are kept until the last one is there: a runtime for which there is
/// none is given up, and what it told is forgotten.
bool Session::has_room_for(int more) {
  if (parts_.size() + static_cast<std::size_t>(more) <= kMostSynchronized) return true;
  stage_ = Stage::kFailed;
  failure_ = "the runtime tells of more than " + std::to_string(kMostSynchronized) +
             " pods and containers";
  parts_ = {};
  around_.translator.forget_all();
  return false;
}

/// A part that is not the last is answered with `more` and nothing else, or the runtime drops us.
void Session::synchronize(const rpc::Request& request, const rpc::Reply& reply) {
  wire::SynchronizeRequest message;
  if (!parse(message, request.payload)) return reply(no_such_message());
  if (stage_ != Stage::kSynchronized && parts_.empty()) around_.translator.forget_all();
  if (!has_room_for(message.pods_size() + message.containers_size())) return;
  for (const auto& pod : message.pods()) {
    auto event = around_.translator.pod(pod, static_cast<int>(pod.pid()));
    if (event) parts_.push_back(std::move(*event));
  }
  for (const auto& container : message.containers()) {
    parts_.push_back(around_.translator.container(container));
  }
  wire::SynchronizeResponse response;
  response.set_more(message.more());
  reply({Code::kOk, {}, response.SerializeAsString()});
  if (message.more()) return;
  stage_ = Stage::kSynchronized;
  around_.listener.connected(runtime_);
  around_.listener.synchronized(std::exchange(parts_, {}));
}

/// How runtimes before 0.12 tell all events that cannot be answered with a change.
void Session::state_change(const rpc::Request& request, const rpc::Reply& reply) {
  wire::StateChangeEvent message;
  if (!parse(message, request.payload)) return reply(no_such_message());
  tell(static_cast<Event>(message.event()), {message.pod(), message.container(), nullptr}, reply);
}

/// The calls about pods and containers all begin alike.
void Session::named_event(Event event, const rpc::Request& request, const rpc::Reply& reply) {
  wire::UpdateContainerRequest message;
  if (!parse(message, request.payload)) return reply(no_such_message());
  tell(event, {message.pod(), message.container(), &message.linux_resources()}, reply);
}

void Session::tell(Event event, const Subject& subject, const rpc::Reply& reply) {
  const auto& [pod, container, resources] = subject;
  Translator& translator = around_.translator;
  Listener& listener = around_.listener;
  std::vector<policy::ledger::Event> events;
  const auto add_pod = [&] {
    const bool afresh = event == Event::kCreateContainer;
    auto seen = translator.pod(pod, pid_of(pod, container), afresh);
    if (seen) events.push_back(std::move(*seen));
  };
  const auto after = [&] {
    reply(done());
    listener.after(events, pod.id());
  };
  switch (event) {
    case Event::kRunPodSandbox:
      add_pod();
      listener.before(events);
      return after();
    case Event::kCreateContainer:
      add_pod();
      events.push_back(translator.container(container));
      return reply(adjusted(listener.creating(
          events, {pod.id(), container.id(), translator.wants_environment(pod)})));
    case Event::kStartContainer:
      add_pod();
      events.push_back(translator.container(container));
      return listener.starting(events, pod.id(), container.id(), [reply] { reply(done()); });
    case Event::kUpdateContainer:
      add_pod();
      events.push_back(resources == nullptr ? translator.container(container)
                                            : translator.updated(container, *resources));
      listener.before(events);
      return reply(done());
    case Event::kPostCreateContainer:
    case Event::kPostStartContainer:
    case Event::kPostUpdateContainer:
      add_pod();
      events.push_back(translator.container(container));
      return after();
    case Event::kPostUpdatePodSandbox:
      add_pod();
      return after();
    case Event::kStopContainer:
      events.push_back({policy::ledger::Source::kNri,
                        policy::ledger::ContainerExited{pod.id(), container.id()}});
      return after();
    case Event::kRemoveContainer:
      events.push_back(
          {policy::ledger::Source::kNri, policy::ledger::ContainerGone{pod.id(), container.id()}});
      return after();
    case Event::kRemovePodSandbox:
      translator.forget(pod.id());
      events.push_back({policy::ledger::Source::kNri, policy::ledger::PodGone{pod.id()}});
      return after();
    case Event::kUpdatePodSandbox:
    case Event::kStopPodSandbox:
      return reply(done());
  }
  reply(done());  // an event of a later NRI
}

}  // namespace ka::nri
