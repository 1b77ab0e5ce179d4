// SPDX-License-Identifier: Apache-2.0
// A node of files with two VMs, a daemon's part for grade = "quiet", and a helper that responds as
// a test decides.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "affinity/messages/quiet.hpp"
#include "affinity/quiet/quiet.hpp"
#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/unit/line/scene.hpp"
#include "tests/unit/quiet/helper.hpp"

namespace ka::tests {

inline constexpr const char* kRecord = "kata-affinity/helper/quiet.json";

inline line::Options quiet_options() {
  line::Options options = at_home();
  options.settings.grade = policy::plan::Grade::kQuiet;
  return options;
}

/// Two VMs with three vCPUs, and the helper's socket.
struct QuietScene : LineScene {
  explicit QuietScene(line::Options options = quiet_options()) : LineScene(8, std::move(options)) {
    boot_two(3);
    temp.write(kRecord, "");
    listen();
    follow();
  }

  void listen() { helper.emplace(io, clock, temp.path() / "helper.sock"); }
  void hang_up() {
    helper.reset();
    std::filesystem::remove(temp.path() / "helper.sock");
  }

  /// As a daemon does at its start.
  void follow() {
    quiet.emplace(io, clock, line().node(),
                  quiet::Quiet::Places{temp.path() / "helper.sock", temp.path()});
    quiet->start();
    line().adopt();
    line().stop_waiting();
    run_loop();
  }

  void run_loop() { run_ready(io); }

  void own(const std::string& sandbox, const policy::CpuSet& cpus) {
    REQUIRE(container(sandbox, "app", cpus, true));
    run_loop();
  }

  /// "namespace/name", as NRI reports it.
  void name(const std::string& sandbox, const std::string& pod_name) {
    policy::ledger::PodSeen pod{.id = sandbox};
    pod.pod_name = pod_name;
    line().handle({policy::ledger::Source::kNri, pod});
  }

  void check_drift() {
    quiet->refresh();
    run_loop();
  }

  /// "quiet", or why it is not.
  std::string grade(const std::string& sandbox) {
    const auto view = line().node().view(sandbox);
    if (!view->grade) return "best-effort";
    return view->grade->obstacle ? messages::obstacle_text(*view->grade->obstacle) : "quiet";
  }

  auto count(const std::string& kind) const { return std::ranges::count(notified, kind); }

  TempDir temp;
  boost::asio::io_context io;
  std::optional<FakeHelper> helper;
  std::optional<quiet::Quiet> quiet;
};

}  // namespace ka::tests
