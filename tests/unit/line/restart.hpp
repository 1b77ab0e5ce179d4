// SPDX-License-Identifier: Apache-2.0
// A node whose daemon was killed; the next one has started, and has not adopted anything yet.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

namespace ka::tests {

/// Sandbox a owns CPU 3, b floats over the rest; the daemon is dead.
struct Restart : LineScene {
  Restart() {
    boot_two(1);
    REQUIRE(container("a", "app", {3}, true));
    REQUIRE(container("b", "app", policy::CpuSet::range(0, 3), false));
    REQUIRE(cpus(210) == "0-2");
    start();
    calls.writes.clear();
    notified.clear();
  }

  std::filesystem::path file(const std::string& pod) const { return state_dir() / (pod + ".json"); }
  void damage(const std::string& pod) const { std::ofstream(file(pod)) << "{"; }
  bool has(const std::string& kind) const {
    return std::ranges::find(notified, kind) != notified.end();
  }

  policy::ledger::Event kubelet(const policy::CpuSet& taken) const {
    policy::ledger::KubeletSeen seen;
    seen.shared_pool = machine - taken;
    seen.claims = {{"uid-other", "app", taken}};
    return {policy::ledger::Source::kKubelet, seen};
  }
};

}  // namespace ka::tests
