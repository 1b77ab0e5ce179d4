// SPDX-License-Identifier: Apache-2.0
// A container runtime's side of NRI, played over a real socket: takes the plugin in as
// pkg/adaptation does, then sends the calls of a test.
#pragma once

#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/unix_socket.hpp"
#include "shim-ext/nri/plugin.hpp"
#include "shim-ext/proto/nri.pb.h"
#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text_log.hpp"

namespace ka::tests {

namespace wire = proto::nri;

inline wire::PodSandbox nri_pod(const std::string& id, std::uint32_t pid) {
  wire::PodSandbox pod;
  pod.set_id(id);
  pod.set_name(id + "-name");
  pod.set_uid(id + "-uid");
  pod.set_namespace_("ns");
  pod.set_runtime_handler("kata");
  pod.set_pid(pid);
  return pod;
}

inline wire::Container nri_container(const std::string& pod, const std::string& id,
                                     const std::string& cpus) {
  wire::Container container;
  container.set_id(id);
  container.set_pod_sandbox_id(pod);
  container.set_name("app");
  auto* cpu = container.mutable_linux()->mutable_resources()->mutable_cpu();
  cpu->set_cpus(cpus);
  cpu->mutable_quota()->set_value(200000);
  cpu->mutable_period()->set_value(100000);
  return container;
}

/// One accepted connection, from the runtime's side.
class NriPeer {
 public:
  /// `registration` is what RegisterPlugin is answered with.
  NriPeer(boost::asio::io_context& io, int fd, const rpc::Response& registration)
      : runtime_([this](std::string bytes) { send(nri::kRuntimeLane, bytes); },
                 [this, registration](const rpc::Request& request, const rpc::Reply& reply) {
                   requests.push_back(request);
                   reply(registration);
                 }),
        plugin_(io, [this](std::string bytes) { send(nri::kPluginLane, bytes); }),
        socket_(std::make_unique<rpc::Socket>(
            io, base::Fd(fd),
            rpc::Socket::Events{[this](std::string_view bytes) { receive(bytes); },
                                [this](const std::string&) { closed = true; }})) {}

  void call(const std::string& method, const google::protobuf::MessageLite& message) {
    call(method, message.SerializeAsString());
  }

  void call(const std::string& method, const std::string& payload) {
    plugin_.call({"nri.pkg.api.v1alpha1.Plugin", method, payload, timeout, {}},
                 [this](const rpc::Response& response) { answers.push_back(response); });
  }

  void send_raw(const std::string& bytes) { socket_->send(bytes); }

  std::chrono::nanoseconds timeout{};  ///< of calls; 0: none
  std::vector<rpc::Request> requests;
  std::vector<rpc::Response> answers;
  std::size_t longest_frame = 0;
  bool closed = false;

 private:
  void send(std::uint32_t lane, const std::string& bytes) { socket_->send(nri::mux(lane, bytes)); }

  void receive(std::string_view bytes) {
    demux_.feed(bytes, [this](std::uint32_t lane, std::string_view payload) {
      longest_frame = std::max(longest_frame, payload.size());
      if (lane == nri::kRuntimeLane) runtime_.receive(payload);
      if (lane == nri::kPluginLane) plugin_.receive(payload);
    });
  }

  nri::Demux demux_;
  rpc::Server runtime_;
  rpc::Client plugin_;
  std::unique_ptr<rpc::Socket> socket_;
};

/// Writes down what the plugin tells, in order: "before(pod s1 vm 100; container c1 2-3)".
class NriDiary final : public nri::Listener {
 public:
  void before(const std::vector<policy::ledger::Event>& events) override {
    lines.push_back("before(" + words(events) + ")");
  }
  base::Result<nri::Adjustment> creating(const std::vector<policy::ledger::Event>& events,
                                         const nri::CreateRequest& request) override {
    before(events);
    const auto& wanted = request.wants_environment;
    created = request.sandbox + '/' + request.container;
    if (wanted) created += *wanted ? " wanted" : " not wanted";
    described = request.described;
    if (!refusal.empty()) return base::fail(base::ErrorCode::kConflict, refusal);
    return adjustment;
  }
  base::Result<nri::Updates> updating(const std::vector<policy::ledger::Event>& events,
                                      const policy::ledger::ContainerSeen&) override {
    before(events);
    if (!refusal.empty()) return base::fail(base::ErrorCode::kConflict, refusal);
    return updates;
  }
  nri::Updates stopped(const std::string&) override { return updates; }
  nri::Updates synchronizing(const std::vector<nri::Described>& containers,
                             const std::set<std::string>&) override {
    listed = containers;
    if (while_synchronizing) while_synchronizing();
    return updates;
  }
  void after(const std::vector<policy::ledger::Event>& events,
             const std::string& sandbox) override {
    lines.push_back("after " + sandbox + "(" + words(events) + ")");
  }
  void synchronized(const std::vector<policy::ledger::Event>& events) override {
    lines.push_back("all(" + words(events) + ")");
  }
  void answered(std::string_view method, std::chrono::nanoseconds) override {
    methods.emplace_back(method);
  }
  void connected(const std::string& runtime, bool accepts_updates) override {
    lines.push_back("connected " + runtime + (accepts_updates ? ", accepts updates" : ""));
  }
  void disconnected(const std::string&) override { lines.push_back("disconnected"); }
  void unseen(const std::map<std::string, std::string>& pods) override {
    std::string text = "unseen";
    for (const auto& [pod, why] : pods) text += ' ' + pod;
    lines.push_back(text);
  }

  std::vector<std::string> drain() { return std::exchange(lines, {}); }

  std::vector<std::string> lines, methods;
  std::function<void()> while_synchronizing;
  std::string created;
  nri::Adjustment adjustment;  ///< what a container that is created is given
  nri::Updates updates;        ///< what other answers change
  std::string refusal;         ///< not empty: nothing is created or updated
  nri::Described described;    ///< the last container that was created
  std::vector<nri::Described> listed;
  std::map<std::string, policy::ledger::ContainerSeen> reports;  ///< the last, by container

 private:
  std::string words(const std::vector<policy::ledger::Event>& events) {
    std::string text;
    for (const auto& event : events) {
      CHECK(event.source == policy::ledger::Source::kNri);
      text += (text.empty() ? "" : "; ") + std::visit(*this, event.body);
    }
    return text;
  }

 public:
  std::string operator()(const policy::ledger::PodSeen& e) const {
    std::string text = "pod " + e.id + (e.vmm ? " vm " + std::to_string(e.vmm->pid) : "") +
                       (e.requested_domain.empty() ? "" : " domain " + e.requested_domain);
    for (const auto& [key, name] : e.annotations) text += ' ' + key + '=' + name;
    if (e.requested_grade != policy::GradeRequest::kNone) {
      text += " grade " + std::string(policy::grade_request_name(e.requested_grade));
    }
    return text;
  }
  std::string operator()(const policy::ledger::PodGone& e) const { return "gone " + e.id; }
  std::string operator()(const policy::ledger::ContainerSeen& e) {
    reports[e.id] = e;
    return "container " + e.sandbox + '/' + e.id +
           (e.spec.cpus ? ' ' + policy::format_list(*e.spec.cpus) : " unchanged") +
           (e.spec.exited.value_or(false) ? " exited" : "");
  }
  std::string operator()(const policy::ledger::ContainerExited& e) const {
    return "exited " + e.container;
  }
  std::string operator()(const policy::ledger::ContainerGone& e) const {
    return "gone " + e.container;
  }
  template <typename Other>
  std::string operator()(const Other&) const {
    return "?";
  }
};

class NriScene {
 public:
  NriScene() : path_(dir_.path() / "nri.sock") { listen(); }
  ~NriScene() { hang_up(); }

  void listen() {
    std::filesystem::remove(path_);
    auto listener = base::listen_unix(path_);
    REQUIRE(listener);
    listener_ = std::move(*listener);
  }

  void start() {
    plugin_ = std::make_unique<nri::Plugin>(
        io_, path_, nri::Identity{},
        [this](int pid, nri::Origin origin) -> base::Result<nri::Process> {
          ++vmm_questions;
          answer_to.push_back(origin);
          if (unread_pids.contains(pid)) {
            return base::fail_errno(ENOMEM, "/proc/" + std::to_string(pid) + "/status");
          }
          if (std::exchange(fail_once, false)) return base::fail_errno(EINTR, "/proc");
          if (ended_pids.contains(pid)) return base::fail(base::ErrorCode::kGone, "it ended");
          return nri::Process{vmm_pids.contains(pid), {pid, start_of(pid)}};
        },
        diary, log_, clock_);
  }

  template <typename Done>
  void run_until(Done done) {
    tests::run_until(io_, done);
  }

  /// The plugin's next connection. Pauses between its attempts pass meanwhile.
  NriPeer& accept() {
    int fd = -1;
    run_until([&] {
      clock_.advance(std::chrono::milliseconds(10));
      fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      return fd >= 0;
    });
    peer_ = std::make_unique<NriPeer>(io_, fd, registration);
    run_until([&] { return !peer_->requests.empty(); });
    return *peer_;
  }

  /// Calls and waits for the answer.
  rpc::Response call(const std::string& method, const google::protobuf::MessageLite& message) {
    return call(method, message.SerializeAsString());
  }

  rpc::Response call(const std::string& method, const std::string& payload) {
    const std::size_t before = peer_->answers.size();
    peer_->call(method, payload);
    run_until([&] { return peer_->answers.size() > before; });
    return peer_->answers.back();
  }

  /// Configure; the mask of events that the plugin asks for.
  std::int32_t configure(const std::string& runtime, const std::string& version,
                         const std::string& nri_version = "") {
    wire::ConfigureRequest request;
    request.set_runtime_name(runtime);
    request.set_runtime_version(version);
    request.set_nri_version(nri_version);
    wire::ConfigureResponse response;
    REQUIRE(response.ParseFromString(call("Configure", request).payload));
    return response.events();
  }

  /// All of the handshake, with a runtime that has nothing.
  NriPeer& handshake() {
    accept();
    configure("containerd", "v1.7.24");
    call("Synchronize", wire::SynchronizeRequest());
    diary.drain();
    return *peer_;
  }

  nri::Plugin& plugin() { return *plugin_; }
  TestClock& clock() { return clock_; }

  void hang_up() { peer_.reset(); }

  NriDiary diary;
  rpc::Response registration;  ///< what the next RegisterPlugin is answered with
  std::set<int> vmm_pids, ended_pids, reused_pids, unread_pids;
  std::set<int> late_pids;  ///< of processes that were started months after boot
  bool fail_once = false;   ///< the next probe fails
  int vmm_questions = 0;
  std::vector<nri::Origin> answer_to;
  std::string log_lines;

 private:
  std::uint64_t start_of(int pid) const {
    if (late_pids.contains(pid)) return std::uint64_t{1} << 30U;
    return reused_pids.contains(pid) ? 2 : 1;
  }

  TempDir dir_;
  std::filesystem::path path_;
  base::Fd listener_;
  log::Log log_ = tests::text_log(log::Level::kInfo, log_lines);
  TestClock clock_;
  boost::asio::io_context io_;
  std::unique_ptr<NriPeer> peer_;
  std::unique_ptr<nri::Plugin> plugin_;
};

}  // namespace ka::tests
