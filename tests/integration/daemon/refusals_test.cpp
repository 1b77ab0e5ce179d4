// SPDX-License-Identifier: Apache-2.0
// The daemon among people who mean it ill, and people who err. No VM here.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>
#include <vector>

#include "base/fd.hpp"
#include "base/unix_socket.hpp"
#include "tests/catch.hpp"
#include "tests/integration/daemon/programs.hpp"
#include "tests/scripted_server.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text.hpp"

using namespace ka;
using tests::contains;
using tests::DaemonScene;
using tests::eventually;
using tests::Seconds;

namespace {

base::Fd connect_to(const std::string& path) {
  auto connected = base::connect_unix(path, std::chrono::seconds{10});
  REQUIRE(connected);
  return std::move(*connected);
}

std::string put(const std::string& target, const std::string& body) {
  return "PUT " + target +
         " HTTP/1.1\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::string read_now(const base::Fd& fd) {
  std::string text(65536, '\0');
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

/// `kata-affinityctl verify` where the daemon's report has this verdict.
tests::Ended verify_of(const std::string& verdict) {
  const tests::TempDir dir;
  const std::string body = R"({"verdict":")" + verdict + R"(","ok":false,
      "seen":{"sandboxes":0,"threads":0},"known":{"sandboxes":1,"threads":4},"findings":[
      {"severity":")" + verdict +
                           R"(","invariant":"unread","sandbox":"s1","text":"unread"}]})";
  const std::string response =
      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  const tests::ScriptedServer daemon(dir.path() / "api.sock", {response},
                                     [](int peer, const std::string& text) {
                                       ::send(peer, text.data(), text.size(), MSG_NOSIGNAL);
                                       tests::wait_for_end(peer);
                                     });
  return tests::run({KA_CTL, "--socket", dir.path() / "api.sock", "verify"}, dir.path() / "out");
}

}  // namespace

TEST_CASE("a second daemon refuses to start, the first continues") {
  DaemonScene scene;
  scene.start();
  const auto second = tests::run(scene.command(), scene.path("second"));
  CHECK(second.exit == 1);
  CHECK(contains(second.out, "another daemon serves"));
  CHECK(scene.ctl({"status"}).exit == 0);
}

TEST_CASE("two daemons with different sockets cannot share a state directory") {
  DaemonScene first;
  first.start();
  const auto second = tests::run({first.command()[0], "--socket", first.path("other.sock"),
                                  "--state-dir", first.path("state")},
                                 first.path("second"));
  CHECK(second.exit == 1);
  CHECK(contains(second.out, "another daemon uses"));
}

TEST_CASE("a dead daemon's socket is replaced") {
  DaemonScene scene;
  scene.start();
  scene.daemon().send(SIGKILL);
  scene.daemon().wait();
  CHECK(std::filesystem::exists(scene.socket()));
  scene.start();
  CHECK(scene.ctl({"status"}).exit == 0);
}

TEST_CASE("an invalid configuration is one line with its position, and no daemon starts") {
  DaemonScene scene("houskeeping = \"sandbox\"\n");
  const auto ended = tests::run(scene.command(), scene.path("out"));
  CHECK(ended.exit == 2);
  CHECK(contains(ended.out, "affinity.toml:2:1: "));
  CHECK(std::count(ended.out.begin(), ended.out.end(), '\n') == 1);
  auto check = scene.command();
  check.emplace_back("--check-config");
  CHECK(tests::run(check, scene.path("out")).exit == 2);
  scene.configure("housekeeping = \"sandbox\"\n");
  CHECK(tests::run(check, scene.path("out")).exit == 0);
}

TEST_CASE("metrics and probes are served over TCP too, and nothing else there") {
  DaemonScene scene("metrics_listen = \"127.0.0.1:19177\"\n");
  scene.start();
  const std::string base = "http://127.0.0.1:19177";
  const auto metrics = tests::run({"curl", "-s", base + "/metrics"}, scene.path("curl"));
  CHECK(contains(metrics.out, "kata_affinity_sandboxes 0"));
  CHECK(tests::run({"curl", "-sf", base + "/readyz"}, scene.path("curl")).exit == 0);
  CHECK(contains(tests::run({"curl", "-s", base + "/v1/node"}, scene.path("curl")).out, "error"));
}

TEST_CASE("hostile clients get an error or are disconnected, and others are not affected") {
  DaemonScene scene;
  scene.start();
  const std::string before = scene.ctl({"status", "--json"}).out;
  const std::string target = "/v1/sandboxes/s1";
  CHECK(contains(scene.raw(put(target, std::string(10 << 20, 'x'))), " 413 "));
  CHECK(contains(scene.raw(put(target, "{\"vmm_pid\":")), "body:1:12: not JSON"));
  CHECK(contains(scene.raw(put(target, std::string(500'000, '['))), " 400 "));
  CHECK(contains(scene.raw(put(target, "{\"vmm_pid\":1,\"vmm\":2}")), "vmm: unknown key"));
  CHECK(contains(scene.raw("\r\n\r\n\x16\x03\x01 nonsense\r\n\r\n"), " 400 "));

  std::vector<base::Fd> crowd;
  for (int i = 0; i < 200; ++i) {
    crowd.push_back(connect_to(scene.socket()));
    const std::string half = put(target, "{}").substr(0, static_cast<std::size_t>(i) % 60);
    ::send(crowd.back().get(), half.data(), half.size(), MSG_NOSIGNAL);
    if (i % 3 == 0) crowd.back().reset();
  }
  const auto start = std::chrono::steady_clock::now();
  CHECK(scene.ctl({"status", "--json"}).out == before);
  CHECK(std::chrono::steady_clock::now() - start < Seconds(2));
  CHECK(scene.daemon().runs());
}

TEST_CASE(
    "a configuration that nests without end is refused, at the start and when it is read again") {
  const std::string deep = "x = " + std::string(50'000, '[') + std::string(50'000, ']') + '\n';
  DaemonScene scene(deep);
  const auto ended = tests::run(scene.command(), scene.path("out"));
  CHECK(ended.exit == 2);
  CHECK(contains(ended.out, "affinity.toml:2:37: nests deeper than 32 levels"));
  scene.configure("drift_check = 1\n");
  scene.start();
  scene.configure(deep);
  scene.daemon().send(SIGHUP);
  CHECK(eventually([&] { return contains(scene.log(), "nests deeper than 32 levels"); }));
  CHECK(scene.ctl({"status"}).exit == 0);
}

TEST_CASE("files that are not regular files block nothing") {
  DaemonScene scene;
  const auto fifo = scene.path("fifo");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  scene.configure("kubelet_state = \"" + fifo.string() + "\"\n");
  const auto make_tasks = [&](const std::string& suffix) {
    for (const char* name : {"config.json", "shim.pid"}) {
      const auto task = scene.path("containerd/io.containerd.runtime.v2.task/k8s.io") /
                        (std::string(name) + suffix);
      std::filesystem::create_directories(task);
      REQUIRE(::mkfifo((task / name).c_str(), 0600) == 0);
    }
  };
  make_tasks("-before");
  scene.start();
  CHECK(scene.ctl({"status"}).exit == 0);
  make_tasks("-after");
  CHECK_FALSE(eventually([&] { return scene.ctl({"status"}).exit != 0; }, Seconds(1)));
  CHECK(contains(scene.log(), "is not a regular file"));
  scene.daemon().send(SIGTERM);
  CHECK(scene.daemon().wait() == 0);
  auto command = scene.command();
  *(std::ranges::find(command, "--config") + 1) = fifo.string();
  command.emplace_back("--check-config");
  const auto ended = tests::run(command, scene.path("out"));
  CHECK(ended.exit == 2);
  CHECK(contains(ended.out, fifo.string() + ": is not a regular file"));
}

TEST_CASE(
    "the largest pod that is taken is there after a restart, and one container more is refused") {
  DaemonScene scene;
  scene.start();
  REQUIRE(contains(scene.raw(put("/v1/sandboxes/s1", "{}")), " 200 "));
  const std::string body = R"({"cpus":"0","name":")" + std::string(512, 'n') + "\"}";
  const auto target = [](int number) {
    std::string id = std::to_string(number);
    return "/v1/sandboxes/s1/containers/" + id.insert(0, 128 - id.size(), 'c');
  };
  for (int i = 0; i < 512; ++i) REQUIRE(contains(scene.raw(put(target(i), body)), " 200 "));
  const std::string refused = scene.raw(put(target(512), body));
  CHECK(contains(refused, " 409 "));
  CHECK(contains(refused, "limit of 512 containers in sandbox"));
  const std::string before = scene.ctl({"map", "--json"}).out;
  scene.daemon().send(SIGKILL);
  scene.daemon().wait();
  scene.start();
  CHECK(scene.ctl({"map", "--json"}).out == before);
}

TEST_CASE("an idle daemon uses no CPU time") {
  DaemonScene scene("drift_check = 10\n");
  scene.start();
  const double before = scene.daemon().cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds(3));
  CHECK(scene.daemon().cpu_seconds() - before < 0.015);
}

TEST_CASE("the log has the duration of each part of the start") {
  tests::DaemonScene scene;
  scene.start();
  for (const char* part :
       {"topology ", "configuration ", "state and first run ", "sources ", " ms total"}) {
    CHECK(tests::eventually([&] { return scene.log().find(part) != std::string::npos; }));
  }
}

TEST_CASE("a reader of the log that stops, or is gone, does not stop the daemon") {
  DaemonScene scene;
  const std::string fifo = scene.path("stderr");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  base::Fd reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  base::Fd other(::open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  scene.wrap({"sh", "-c", "log=$1; shift; exec \"$@\" 2> \"$log\"", "sh", fifo});
  scene.start();
  scene.configure("no_such_setting = 1\n");
  while (::write(other.get(), "x", 1) == 1) continue;
  scene.daemon().send(SIGHUP);
  CHECK_FALSE(eventually([&] { return scene.ctl({"status"}).exit != 0; }, Seconds(1)));
  while (!read_now(reader).empty()) continue;
  scene.daemon().send(SIGHUP);
  CHECK(eventually([&] { return contains(read_now(reader), " of the log w"); }));
  reader.reset();
  scene.daemon().send(SIGTERM);
  CHECK(scene.daemon().wait() == 0);
}

TEST_CASE("a daemon that cannot start for lack of descriptors prints one line") {
  // A sanitizer needs descriptors itself to judge a pointer.
  if (KA_TEST_SANITIZED) return;
  for (const char* limit : {"--nofile=9:9", "--nofile=12:12", "--nofile=14:14"}) {
    DaemonScene scene;
    std::vector<std::string> command{"prlimit", limit};
    for (std::string& word : scene.command()) command.push_back(std::move(word));
    const auto ended = tests::run(command, scene.path("out"));
    CHECK(ended.exit == 1);
    CHECK(contains(ended.out, "kata-affinityd: "));
    CHECK(contains(ended.out, "Too many open files"));
  }
}

TEST_CASE("the daemon's directories are private, whatever its umask") {
  DaemonScene scene;
  std::filesystem::create_directories(scene.path("state"));
  std::filesystem::permissions(scene.path("state"), std::filesystem::perms::all);
  scene.wrap({"sh", "-c", "umask 000; exec \"$@\"", "sh"});
  scene.start();
  constexpr auto kWrite =
      std::filesystem::perms::group_write | std::filesystem::perms::others_write;
  for (const char* name : {"state", "kata-affinity"}) {
    const auto mode = std::filesystem::status(scene.path(name)).permissions();
    CHECK((mode & kWrite) == std::filesystem::perms::none);
  }
  CHECK(contains(scene.log(), "directory was writable by other users"));
}

TEST_CASE("a user without rights reads and verifies on the read socket, and changes nothing") {
  if (::geteuid() != 0 || std::system("command -v setpriv > /dev/null") != 0) {
    std::cout << "skipped: needs root and setpriv, to become another user\n";
    return;
  }
  DaemonScene scene;
  std::filesystem::permissions(scene.path("."), std::filesystem::perms(0711));
  const std::string reads = scene.path("read/api.sock").string();
  scene.configure("drift_check = 1\nread_socket = \"" + reads +
                  "\"\nread_socket_mode = \"0666\"\n");
  scene.start();
  const auto as_user = [&](const std::vector<std::string>& command, const std::string& socket) {
    std::vector<std::string> whole = {"setpriv", "--reuid=65532", "--regid=65532", "--clear-groups",
                                      KA_CTL,    "--socket",      socket};
    whole.insert(whole.end(), command.begin(), command.end());
    return tests::run(whole, scene.path("user.out"));
  };
  scene.raw(put("/v1/sandboxes/s1", R"({"pod_name":"shop/cart"})"));
  scene.raw(put("/v1/sandboxes/s1/containers/c1", R"({"cpus":"0","exclusive":true})"));
  for (const char* command : {"status", "verify", "map"}) {
    CHECK(as_user({command}, reads).exit == 0);
  }
  CHECK(as_user({"explain", "--cpu", "0"}, reads).exit == 0);
  const auto refused = as_user({"sandbox", "rm", "s1"}, reads);
  CHECK(refused.exit == 2);
  CHECK(contains(refused.out, "DELETE is refused on this socket"));
  CHECK(contains(scene.ctl({"map"}).out, "shop/cart"));
  CHECK(as_user({"status"}, scene.socket()).exit == 3);
}

TEST_CASE("verify prints the verdict first, and exits with 1 where something was not read") {
  const auto unknown = verify_of("unknown");
  CHECK(unknown.exit == 1);
  CHECK(unknown.out.starts_with("unknown: 0 of 4 threads in 0 of 1 sandbox read, 1 finding\n"));
  CHECK(verify_of("violated").exit == 1);
  CHECK(verify_of("degraded").exit == 0);
}

TEST_CASE("verify is unknown while kubelet's state cannot be read") {
  DaemonScene scene;
  const auto state = scene.path("cpu_manager_state");
  std::ofstream(state) << R"({"policyName":"sta)";
  scene.configure("drift_check = 1\nkubelet_state = \"" + state.string() + "\"\n");
  scene.start();
  const auto damaged = scene.ctl({"verify"});
  CHECK(damaged.exit == 1);
  CHECK(damaged.out.starts_with("unknown: "));
  CHECK(contains(damaged.out, "source kubelet is down"));
  std::filesystem::remove(state);
  CHECK(eventually([&] { return scene.ctl({"verify"}).exit == 0; }, Seconds(20)));
}
