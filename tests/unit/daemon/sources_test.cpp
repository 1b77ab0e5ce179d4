// SPDX-License-Identifier: Apache-2.0
// The sources of a node as one: what each of them is called with, in which order, and when a
// question to all of them is answered.
#include "affinity/daemon/sources.hpp"

#include <array>
#include <utility>

#include "base/rpc/timer.hpp"
#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/shim-ext/recording_node.hpp"

using namespace ka;
using namespace std::chrono_literals;
using policy::ledger::Source;
using source::Notice;
using Lines = std::vector<std::string>;

namespace {

/// Records each call with the node, and answers verify after a time.
class FakeSource final : public source::Source {
 public:
  FakeSource(std::string name, std::chrono::milliseconds answer_time,
             const daemon::SourceContext& with, source::Peers& peers)
      : name_(std::move(name)),
        answer_time_(answer_time),
        node_(static_cast<tests::RecordingNode&>(with.node)),
        clock_(with.clock),
        peers_(peers),
        timer_(with.io, with.clock) {}

  void start() override { record("start"); }
  void refresh() override { record("refresh"); }
  void catch_up(const base::Deadline& deadline) override {
    const auto left = deadline.remaining(clock_);
    record("catch up within " +
           std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(left).count()));
  }
  void query_for_verify(const std::function<void()>& answered) override {
    if (answer_time_ == 0ms) return Source::query_for_verify(answered);
    timer_.in(answer_time_, answered);
  }
  void notify(Notice notice) override {
    record("notice " + std::to_string(static_cast<int>(notice)));
    if (name_ == "runtime" && notice == Notice::kRuntimeConnected) {
      peers_.notify(Notice::kRuntimeReported);
    }
  }

 private:
  void record(const std::string& call) { node_.add(name_ + ": " + call); }

  std::string name_;
  std::chrono::milliseconds answer_time_;
  tests::RecordingNode& node_;
  const base::Clock& clock_;
  source::Peers& peers_;
  rpc::Timer timer_;
};

template <int kAnswerTime>
std::unique_ptr<source::Source> make_runtime(const daemon::SourceSettings&,
                                             const daemon::SourceContext& with,
                                             source::Peers& peers) {
  return std::make_unique<FakeSource>("runtime", std::chrono::milliseconds(kAnswerTime), with,
                                      peers);
}

template <int kAnswerTime>
std::unique_ptr<source::Source> make_kubelet(const daemon::SourceSettings& settings,
                                             const daemon::SourceContext& with,
                                             source::Peers& peers) {
  if (settings.kubelet_state.empty()) return nullptr;
  return std::make_unique<FakeSource>("kubelet", std::chrono::milliseconds(kAnswerTime), with,
                                      peers);
}

bool always(const daemon::SourceSettings&) { return true; }
bool never(const daemon::SourceSettings&) { return false; }
bool has_kubelet(const daemon::SourceSettings& settings) { return !settings.kubelet_state.empty(); }

constexpr std::array kPrompt{
    daemon::SourceRegistration{Source::kNri, never, make_runtime<0>},
    daemon::SourceRegistration{Source::kApi, always, nullptr},
    daemon::SourceRegistration{Source::kKubelet, has_kubelet, make_kubelet<0>}};
constexpr std::array kSlow{daemon::SourceRegistration{Source::kNri, never, make_runtime<1000>},
                           daemon::SourceRegistration{Source::kPersist, never, make_runtime<0>},
                           daemon::SourceRegistration{Source::kKubelet, never, make_kubelet<300>}};

struct Scene final : nri::Containers {
  nri::Adjustment adjust(const nri::CreateRequest&) override { return {}; }
  void await_guest(const std::string&, const std::string&, std::function<void()>) override {}
  void forget_gone() override {}

  daemon::Sources make(std::span<const daemon::SourceRegistration> table) {
    return {table, settings, context, [this](Source source) { awaited.push_back(source); }};
  }

  tests::TestClock clock;
  boost::asio::io_context io;
  tests::RecordingNode node{clock};
  std::string log_lines;
  log::Log log = tests::text_log(log::Level::kInfo, log_lines);
  daemon::SourceSettings settings{
      .nri_socket = {}, .kubelet_state = "/state", .pod_resources = {}, .cdi = {}, .kata = {}};
  daemon::SourceContext context{io, node, *this, nullptr, {}, {}, log, clock};
  std::vector<Source> awaited;
};

}  // namespace

TEST_CASE("every source is started, refreshed and notified, in the order of the table") {
  Scene scene;
  auto sources = scene.make(kPrompt);
  CHECK(scene.node.drain().empty());
  sources.start();
  CHECK(scene.node.drain() == Lines{"runtime: start", "kubelet: start"});
  sources.refresh();
  CHECK(scene.node.drain() == Lines{"runtime: refresh", "kubelet: refresh"});
  sources.notify(Notice::kCgroupWritten);
  CHECK(scene.node.drain() == Lines{"runtime: notice 3", "kubelet: notice 3"});
}

TEST_CASE("all sources catch up by the deadline of the client that waits") {
  Scene scene;
  auto sources = scene.make(kPrompt);
  const auto deadline = base::Deadline::in(scene.clock, 50ms);
  scene.clock.advance(20ms);
  sources.catch_up(deadline);
  CHECK(scene.node.drain() == Lines{"runtime: catch up within 30", "kubelet: catch up within 30"});
}

TEST_CASE("a source's notice reaches the others and itself") {
  Scene scene;
  auto sources = scene.make(kPrompt);
  sources.notify(Notice::kRuntimeConnected);
  CHECK(scene.node.drain() ==
        Lines{"runtime: notice 0", "runtime: notice 2", "kubelet: notice 2", "kubelet: notice 0"});
}

TEST_CASE("a start waits for sources that the node has, made here or not") {
  Scene scene;
  scene.make(kPrompt);
  CHECK(scene.awaited == std::vector{Source::kApi, Source::kKubelet});
}

TEST_CASE("a source that the settings disable is not there") {
  Scene scene;
  scene.settings.kubelet_state.clear();
  auto sources = scene.make(kPrompt);
  CHECK(scene.awaited == std::vector{Source::kApi});
  sources.start();
  CHECK(scene.node.drain() == Lines{"runtime: start"});
}

TEST_CASE("verify goes on once the slowest source has answered") {
  Scene scene;
  auto sources = scene.make(kSlow);
  int answered = 0;
  sources.query_for_verify([&] { ++answered; });
  tests::run_for(scene.io, scene.clock, 999ms, 1ms);
  CHECK(answered == 0);
  tests::run_for(scene.io, scene.clock, 1ms, 1ms);
  CHECK(answered == 1);
  tests::run_for(scene.io, scene.clock, 5s, 1s);
  CHECK(answered == 1);
}

TEST_CASE("verify does not wait where every source answers at once, or there is none") {
  Scene scene;
  int answered = 0;
  auto sources = scene.make(kPrompt);
  sources.query_for_verify([&] { ++answered; });
  CHECK(answered == 1);
  auto none = scene.make({});
  none.query_for_verify([&] { ++answered; });
  CHECK(answered == 2);
}
