// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kubelet/kubelet_source.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "shim-ext/watch/kubelet_state.hpp"
#include "tests/catch.hpp"
#include "tests/failing_inotify.hpp"
#include "tests/run_loop.hpp"
#include "tests/temp_dir.hpp"
#include "tests/test_clock.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/shim-ext/recording_node.hpp"

using namespace ka;
using policy::ledger::Source;
using Lines = std::vector<std::string>;

namespace {

struct Scene {
  /// With spaces at its end, up to `size` bytes.
  void write(const std::string& pool, std::size_t size = 0) const {
    std::string text = R"({"policyName":"static","defaultCpuSet":")" + pool + "\"}";
    text.resize(std::max(size, text.size()), ' ');
    dir.write("state.new", text);
    std::filesystem::rename(dir.path() / "state.new", file);
  }

  tests::TempDir dir;
  std::filesystem::path file = dir.path() / "cpu_manager_state";
  tests::TestClock clock;
  tests::RecordingNode node{clock};
  std::string log_lines;
  log::Log log = tests::text_log(log::Level::kInfo, log_lines);
  boost::asio::io_context io;
};

}  // namespace

TEST_CASE("kubelet's state is reported at start and once per change") {
  Scene scene;
  scene.write("0-3");
  kubelet::KubeletSource source(scene.io, scene.file, scene.node, scene.log);
  CHECK(scene.node.drain() == Lines{"narrow within no deadline: kubelet", "finish "});
  CHECK(scene.node.statuses[Source::kKubelet].up);
  source.refresh();
  source.catch_up(base::Deadline::none());
  CHECK(scene.node.drain().empty());
  scene.write("0-5");
  source.refresh();
  CHECK(scene.node.drain() == Lines{"narrow within no deadline: kubelet", "finish "});
}

TEST_CASE("kubelet's state only narrows while another source's client waits") {
  Scene scene;
  scene.write("0-3");
  kubelet::KubeletSource source(scene.io, scene.file, scene.node, scene.log);
  scene.node.drain();
  scene.write("0-2");
  const auto deadline = base::Deadline::in(scene.clock, std::chrono::milliseconds(50));
  scene.clock.advance(std::chrono::milliseconds(20));
  source.catch_up(deadline);
  CHECK(scene.node.drain() == Lines{"narrow within 30 ms: kubelet"});
  source.refresh();
  CHECK(scene.node.drain().empty());
}

TEST_CASE("an unparsable state at the start is not used, and no other is claimed to be") {
  Scene scene;
  scene.write("3-0");
  const kubelet::KubeletSource source(scene.io, scene.file, scene.node, scene.log);
  CHECK(scene.node.statuses[Source::kKubelet].text.ends_with("; not used"));
  CHECK(scene.log_lines.find("last good state") == std::string::npos);
}

TEST_CASE("an unparsable state is reported as outdated, once") {
  Scene scene;
  scene.write("0-3");
  kubelet::KubeletSource source(scene.io, scene.file, scene.node, scene.log);
  scene.node.drain();
  scene.write("3-0");
  source.refresh();
  CHECK(scene.node.drain() == Lines{"narrow within no deadline: kubelet", "finish "});
  CHECK(scene.node.known.kubelet().outdated);
  source.refresh();
  CHECK(scene.node.drain().empty());
  CHECK_FALSE(scene.node.statuses[Source::kKubelet].up);
  CHECK(scene.log_lines.find("keeping the last good state") != std::string::npos);
}

TEST_CASE("a state of the largest size is used; a byte more, and the last good one stays") {
  Scene scene;
  scene.write("0-3", watch::kMaxKubeletState);
  kubelet::KubeletSource source(scene.io, scene.file, scene.node, scene.log);
  CHECK(scene.node.statuses[Source::kKubelet].up);
  CHECK(std::filesystem::file_size(scene.file) == watch::kMaxKubeletState);
  scene.write("0-5", watch::kMaxKubeletState + 1);
  source.refresh();
  CHECK_FALSE(scene.node.statuses[Source::kKubelet].up);
  CHECK(scene.node.known.kubelet().outdated);
  CHECK(scene.node.known.kubelet().shared_pool == policy::CpuSet::range(0, 3));
}

TEST_CASE("without inotify kubelet's state is late, until there is one again") {
  Scene scene;
  scene.write("0-3");
  const auto [how, limit] = GENERATE(
      std::pair(tests::FailingInotify{.instance = EMFILE}, "fs.inotify.max_user_instances"),
      std::pair(tests::FailingInotify{.watch = ENOSPC}, "fs.inotify.max_user_watches"),
      std::pair(tests::FailingInotify{.watch = EACCES}, "Permission denied"));
  tests::InotifyFails fails(how);
  kubelet::KubeletSource source(scene.io, scene.file, scene.node, scene.log);
  CHECK(scene.node.drain() == Lines{"narrow within no deadline: kubelet", "finish "});
  CHECK(scene.node.statuses[Source::kKubelet].up);
  REQUIRE(scene.node.late[Source::kKubelet]);
  CHECK(scene.node.late[Source::kKubelet]->message.find(limit) != std::string::npos);
  scene.write("0-4");
  tests::run_ready(scene.io);
  CHECK(scene.node.drain().empty());
  source.refresh();
  CHECK(scene.node.drain() == Lines{"narrow within no deadline: kubelet", "finish "});

  fails.end();
  source.refresh();
  CHECK_FALSE(scene.node.late[Source::kKubelet]);
  scene.write("0-5");
  tests::run_ready(scene.io);
  CHECK(scene.node.drain() == Lines{"narrow within no deadline: kubelet", "finish "});
}

TEST_CASE("a directory of kubelet's that is not there is not late") {
  Scene scene;
  kubelet::KubeletSource source(scene.io, scene.dir.path() / "none/state", scene.node, scene.log);
  CHECK_FALSE(scene.node.late[Source::kKubelet]);
}
