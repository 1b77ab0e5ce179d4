// SPDX-License-Identifier: Apache-2.0
#include "base/log/log.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.hpp"
#include "base/log/journal.hpp"
#include "base/unix_socket.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/test_clock.hpp"
#include "tests/text_log.hpp"

using namespace ka::log;

TEST_CASE("a log line has a priority, a text and separable fields") {
  std::string lines;
  const Log log = ka::tests::text_log(Level::kInfo, lines);
  log.warning("thread cannot be placed", {{"sandbox", "s1"}, {"reason", "say \"no\"\nplease"}});
  CHECK(lines == "<4>thread cannot be placed sandbox=s1 reason=\"say \\\"no\\\" please\"\n");
}

TEST_CASE("a level suppresses what is below it") {
  std::string lines;
  Log log = ka::tests::text_log(Level::kWarning, lines);
  log.info("quiet");
  CHECK(lines.empty());
  log.set_level(Level::kDebug);
  log.debug("loud");
  CHECK(lines == "<7>loud\n");
  CHECK_FALSE(parse_level("chatty"));
}

namespace {

using std::chrono::hours;
using std::chrono::seconds;

/// A log whose time a test moves.
struct Scene {
  ka::tests::TestClock clock;
  Log log{Level::kInfo,
          [this](Level, std::string_view text, Fields fields) {
            lines.push_back(to_line(text, fields));
          },
          clock};
  std::vector<std::string> lines;
};

}  // namespace

TEST_CASE("a lasting fault is logged, but not every second") {
  Scene scene;
  for (int second = 0; second < 3 * 3600; ++second) {
    scene.log.warning("state cannot be saved", {{"sandbox", "s1"}, {"reason", "ENOSPC"}});
    scene.clock.advance(seconds(1));
  }
  CHECK(scene.lines.size() < 20 + 3 * 60 + 2);
  CHECK(scene.lines.size() > 3 * 60);
  CHECK(scene.lines[19] == "state cannot be saved sandbox=s1 reason=ENOSPC");
  CHECK(scene.lines.back() == "state cannot be saved sandbox=s1 reason=ENOSPC left_out=59");
}

TEST_CASE("many sandboxes with the same fault do not flood the log") {
  Scene scene;
  for (int second = 0; second < 3600; ++second) {
    for (int sandbox = 0; sandbox < 500; ++sandbox) {
      scene.log.warning("1 thread no longer had the CPUs it was given",
                        {{"kind", "drift"}, {"sandbox", std::to_string(sandbox)}});
    }
    scene.clock.advance(seconds(1));
  }
  CHECK(scene.lines.size() <= 100 + 600 + 1);
}

TEST_CASE("a faulty sandbox suppresses neither others' lines nor its own other lines") {
  Scene scene;
  for (int i = 0; i < 1000; ++i) {
    scene.log.warning("w", {{"kind", "drift"}, {"sandbox", "s1"}});
  }
  scene.lines.clear();
  scene.log.warning("w", {{"kind", "drift"}, {"sandbox", "s2"}});
  scene.log.warning("w", {{"kind", "unmanaged"}, {"sandbox", "s1"}});
  scene.log.info("w", {{"kind", "container-updated"}, {"sandbox", "s1"}});
  CHECK(scene.lines.size() == 3);
  scene.clock.advance(hours(1));
  scene.log.warning("w", {{"kind", "drift"}, {"sandbox", "s1"}});
  CHECK(scene.lines.back() == "w kind=drift sandbox=s1 left_out=980");
}

TEST_CASE("a node that starts thousands of pods at once reports each") {
  Scene scene;
  for (int pod = 0; pod < 3000; ++pod) {
    scene.log.info("VMM is process 7",
                   {{"kind", "sandbox-updated"}, {"sandbox", std::to_string(pod)}});
  }
  CHECK(scene.lines.size() == 3000);
}

TEST_CASE("the limiter's memory is bounded, and lasting faults stay limited") {
  Scene scene;
  for (int i = 0; i < 20000; ++i) {
    scene.log.info("x", {{"kind", "k"}, {"sandbox", std::to_string(i)}});
    if (i % 10 == 0) scene.clock.advance(seconds(1));
    scene.log.warning("broken", {{"sandbox", "s1"}});
  }
  const auto broken = std::ranges::count_if(
      scene.lines, [](const std::string& line) { return line.starts_with("broken"); });
  CHECK(broken < 20 + 2000 / 60 + 2);
}

TEST_CASE("journald gets each field as a field") {
  CHECK(to_entry(Level::kWarning, "thread cannot be placed",
                 std::vector<Field>{{"sandbox", "s1"}, {"container", ""}, {"reason", "E = 1"}}) ==
        "MESSAGE=thread cannot be placed sandbox=s1 reason=\"E = 1\"\nPRIORITY=4\n"
        "SYSLOG_IDENTIFIER=kata-affinityd\nSANDBOX=s1\nREASON=E = 1\n");
  const std::string entry =
      to_entry(Level::kInfo, "x", std::vector<Field>{{"left-out", "two\nlines"}});
  CHECK(entry.ends_with(std::string("LEFT_OUT\n\x09\0\0\0\0\0\0\0two\nlines\n", 27)));
}

TEST_CASE("an entry is one datagram to journald's socket, and never blocks") {
  const ka::tests::TempDir dir;
  const Journal journal(dir.path() / "socket");
  CHECK_FALSE(journal.send(Level::kInfo, "nobody", {}));
  const auto address = ka::base::unix_address(dir.path() / "socket");
  REQUIRE(address);
  const ka::base::Fd peer(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(peer.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0);
  REQUIRE(journal.send(Level::kError, "heard", {}));
  char text[256];
  const ssize_t size = ::recv(peer.get(), text, sizeof text, MSG_DONTWAIT);
  CHECK(std::string(text, static_cast<std::size_t>(std::max<ssize_t>(size, 0))) ==
        "MESSAGE=heard\nPRIORITY=3\nSYSLOG_IDENTIFIER=kata-affinityd\n");
  int sent = 0;
  while (sent < 100000 && journal.send(Level::kError, std::string(1000, 'x'), {})) ++sent;
  CHECK(sent < 100000);
}

TEST_CASE("journald is used if JOURNAL_STREAM matches standard error") {
  struct stat is{};
  REQUIRE(::fstat(STDERR_FILENO, &is) == 0);
  const std::string stream = std::to_string(is.st_dev) + ':' + std::to_string(is.st_ino);
  CHECK(Journal::is_behind(STDERR_FILENO, stream.c_str()));
  CHECK_FALSE(Journal::is_behind(STDERR_FILENO, "1:2"));
  CHECK_FALSE(Journal::is_behind(STDERR_FILENO, nullptr));
}
