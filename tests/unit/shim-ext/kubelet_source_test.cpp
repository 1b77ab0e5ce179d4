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

constexpr const char* kBootId = "91e5fd4e-cd1b-4c6a-9d2c-6e2b2a1f0c11";
constexpr const char* kOtherBootId = "0b6f0f7c-9a3d-4f0e-8f53-5d1c7c3b2a22";
const std::vector<policy::ledger::Claim> kClaims{{"u1", "app", {3}}};

struct Scene {
  /// kubelet has given CPU 3 to a container.
  void write_claim() const {
    replace(R"({"policyName":"static","defaultCpuSet":"0-2","entries":{"u1":{"app":"3"}}})");
  }
  /// With spaces at its end, up to `size` bytes.
  void write(const std::string& pool, std::size_t size = 0) const {
    std::string text = R"({"policyName":"static","defaultCpuSet":")" + pool + "\"}";
    text.resize(std::max(size, text.size()), ' ');
    replace(text);
  }
  void replace(const std::string& text) const {
    dir.write("kubelet/state.new", text);
    std::filesystem::rename(dir.path() / "kubelet/state.new", file);
  }

  tests::TempDir dir;
  std::filesystem::path file = dir.path() / "kubelet/cpu_manager_state";
  kubelet::LastState last{dir.path(), kBootId};
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
  kubelet::KubeletSource source(scene.io, scene.file, scene.last, scene.node, scene.log);
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
  kubelet::KubeletSource source(scene.io, scene.file, scene.last, scene.node, scene.log);
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
  const kubelet::KubeletSource source(scene.io, scene.file, scene.last, scene.node, scene.log);
  CHECK(scene.node.statuses[Source::kKubelet].text.ends_with("; not used"));
  CHECK(scene.log_lines.find("last good state") == std::string::npos);
}

TEST_CASE("an unparsable state is reported as outdated, once") {
  Scene scene;
  scene.write("0-3");
  kubelet::KubeletSource source(scene.io, scene.file, scene.last, scene.node, scene.log);
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
  kubelet::KubeletSource source(scene.io, scene.file, scene.last, scene.node, scene.log);
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
  kubelet::KubeletSource source(scene.io, scene.file, scene.last, scene.node, scene.log);
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
  kubelet::KubeletSource source(scene.io, scene.dir.path() / "none/state", scene.last, scene.node,
                                scene.log);
  CHECK_FALSE(scene.node.late[Source::kKubelet]);
}

TEST_CASE("kubelet's state is read again, unchanged, once its directory can be searched again") {
  Scene scene;
  scene.write_claim();
  kubelet::KubeletSource source(scene.io, scene.file, scene.last, scene.node, scene.log);
  const auto directory = scene.file.parent_path();
  std::filesystem::rename(directory, scene.dir.path() / "kept");
  std::filesystem::create_directory_symlink(directory, directory);  // leads to itself
  source.refresh();
  REQUIRE(scene.node.known.kubelet().outdated);
  std::filesystem::remove(directory);
  std::filesystem::rename(scene.dir.path() / "kept", directory);
  source.catch_up(base::Deadline::none());
  CHECK_FALSE(scene.node.known.kubelet().outdated);
  CHECK(scene.node.statuses[Source::kKubelet].up);
}

TEST_CASE("kubelet's state is noticed in a directory that took the place of another") {
  Scene scene;
  const auto directory = scene.file.parent_path();
  std::filesystem::create_directories(directory);
  kubelet::KubeletSource source(scene.io, scene.file, scene.last, scene.node, scene.log);
  source.catch_up(base::Deadline::none());
  std::filesystem::rename(directory, scene.dir.path() / "former");
  std::filesystem::create_directories(directory);
  tests::run_ready(scene.io);
  source.catch_up(base::Deadline::none());
  REQUIRE(scene.node.drain().empty());
  scene.write_claim();
  tests::run_ready(scene.io);
  CHECK(scene.node.drain() == Lines{"narrow within no deadline: kubelet", "finish "});
}

TEST_CASE("a kubelet file that is gone at the start is as the daemon before read it last") {
  Scene scene;
  scene.write_claim();
  kubelet::KubeletSource(scene.io, scene.file, scene.last, scene.node, scene.log);
  scene.node.drain();
  std::filesystem::remove(scene.file);
  SECTION("of the same boot") {
    kubelet::KubeletSource source(scene.io, scene.file, scene.last, scene.node, scene.log);
    CHECK(scene.node.drain() == Lines{"narrow within no deadline: kubelet", "finish "});
    CHECK(scene.node.known.kubelet().outdated);
    CHECK(scene.node.known.kubelet().claims == kClaims);
    const source::Status& status = scene.node.statuses[Source::kKubelet];
    CHECK_FALSE((status.up || status.absent));
    CHECK(status.text.ends_with(" was removed; keeping the last good state"));
    scene.write("0-3");
    source.refresh();
    CHECK_FALSE(scene.node.known.kubelet().outdated);
    CHECK(scene.node.statuses[Source::kKubelet].up);
  }
  SECTION("of another boot: there is none") {
    scene.last = {scene.dir.path(), kOtherBootId};
    const kubelet::KubeletSource source(scene.io, scene.file, scene.last, scene.node, scene.log);
    CHECK(scene.node.statuses[Source::kKubelet].absent);
  }
  SECTION("what is damaged is not none") {
    scene.dir.write("cpu_manager_state", "damaged");
    const kubelet::KubeletSource source(scene.io, scene.file, scene.last, scene.node, scene.log);
    const source::Status& status = scene.node.statuses[Source::kKubelet];
    CHECK_FALSE((status.up || status.absent));
    CHECK(status.text.ends_with(" was removed; its last content cannot be read"));
    CHECK(scene.log_lines.find("before the start") != std::string::npos);
  }
}

TEST_CASE("a kubelet file that cannot be read at the start is as the daemon before read it last") {
  Scene scene;
  scene.write_claim();
  kubelet::KubeletSource(scene.io, scene.file, scene.last, scene.node, scene.log);
  scene.dir.write("kubelet/cpu_manager_state", "damaged");
  const kubelet::KubeletSource source(scene.io, scene.file, scene.last, scene.node, scene.log);
  CHECK(scene.node.known.kubelet().claims == kClaims);
  CHECK_FALSE(scene.node.statuses[Source::kKubelet].up);
}

TEST_CASE("kubelet's state that cannot be saved is saved later, with one warning") {
  Scene scene;
  scene.last = {scene.dir.path() / "gone", kBootId};
  scene.write_claim();
  kubelet::KubeletSource source(scene.io, scene.file, scene.last, scene.node, scene.log);
  source.refresh();
  const std::size_t first = scene.log_lines.find("for the next start");
  REQUIRE(first != std::string::npos);
  CHECK(scene.log_lines.find("for the next start", first + 1) == std::string::npos);
  std::filesystem::create_directory(scene.dir.path() / "gone");
  source.refresh();
  CHECK(scene.last.load().value().find("u1") != std::string::npos);
}
