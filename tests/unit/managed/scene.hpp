// SPDX-License-Identifier: Apache-2.0
// A node where we hand out CPUs, without its cgroups.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "affinity/managed/manager.hpp"
#include "affinity/managed/release.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/temp_dir.hpp"
#include "tests/test_clock.hpp"
#include "tests/unit/shim-ext/recording_node.hpp"

namespace ka::tests {

class NoWriter final : public host::CpusetWriter {
 public:
  base::Result<void> write(const std::filesystem::path&, const policy::CpuSet&) override {
    return {};
  }
  base::Result<void> write_mems(const std::filesystem::path&, const policy::NodeSet&) override {
    return {};
  }
  base::Result<void> write_io_weight(const std::filesystem::path&, int) override { return {}; }
  base::Result<void> write_io_max(const std::filesystem::path&, const std::string&,
                                  const std::string&) override {
    return {};
  }
};

inline nri::Described container(const std::string& id, int cpus) {
  return {.candidate = {.sandbox = "s-" + id,
                        .id = id,
                        .pod_uid = "uid-" + id,
                        .pod_name = "shop/" + id,
                        .name = "app",
                        .guaranteed = false,
                        .requested = {},
                        .quota = cpus == 0 ? 50000 : cpus * 100000,
                        .period = 100000,
                        .cgroup = {}},
          .needs = {},
          .pod = {},
          .devices = {},
          .pod_cgroup = "kubepods-pod" + id + ".slice",
          .cgroup = {},
          .cpus = {},
          .mems = {},
          .outside_vm = true};
}

/// Of what is on disk in `dir`, beside kubelet's state file.
inline auto open_release(const TempDir& dir, policy::CpuSet cpus, policy::NodeSet mems) {
  return managed::Release::open(managed::AllocationFile(dir.path(), "boot"),
                                dir.path() / "cpu_manager_state",
                                {std::move(cpus), std::move(mems)});
}

/// "c1 0-3, c2 4".
inline std::string text(const nri::Updates& updates) {
  std::string all;
  for (const auto& [id, cpus, mems] : updates) {
    all += (all.empty() ? "" : ", ") + id + ' ' + policy::format_list(cpus);
    if (!mems.empty()) all += " mems " + policy::format_list(mems);
  }
  return all;
}

struct Scene {
  explicit Scene(const policy::managed::Rules& with = {}, const ka::test::Grid& machine = {})
      : rules(with), grid(machine) {
    restart();
  }

  /// As after kill -9: what is on disk is all that is left.
  void restart() { start(managed::Cpusets(std::nullopt, writer)); }

  void start(managed::Cpusets cpusets) {
    auto books = policy::managed::Books::open(tests_machine(), rules).value();
    manager.emplace(std::move(books), managed::AllocationFile(dir.path(), "boot"),
                    std::move(cpusets),
                    managed::Manager::Dependencies{node, board, clock,
                                                   [this](auto next) { later = std::move(next); },
                                                   dir.path() / "sys"});
    REQUIRE(manager->start());
  }

  policy::Topology tests_machine() const { return ka::test::grid_machine(grid).topology(); }

  std::string owners() {
    std::vector<policy::ledger::Event> events;
    manager->complete(events);
    if (events.empty()) return "unchanged";
    const auto& seen = std::get<policy::ledger::KubeletSeen>(events.front().body);
    std::string all = "shared " + policy::format_list(*seen.shared_pool);
    for (const auto& claim : *seen.claims) {
      all += ", " + claim.pod_uid + '/' + claim.container + ' ' + policy::format_list(claim.cpus);
    }
    return all;
  }

  policy::managed::Rules rules;
  ka::test::Grid grid;
  tests::TempDir dir;
  tests::TestClock clock;
  board::Board board{clock};
  tests::RecordingNode node{clock};
  NoWriter writer;
  std::function<void()> later;
  std::optional<managed::Manager> manager;
};

}  // namespace ka::tests
