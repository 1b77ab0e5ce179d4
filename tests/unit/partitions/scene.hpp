// SPDX-License-Identifier: Apache-2.0
// A node of files: what kata-affinity-helper's own code is requested over its socket, makes of it
// in a tree of cgroups, in files of power and of quotas, and what the node shows then.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "affinity/helper/partition_service.hpp"
#include "affinity/helper/quota_service.hpp"
#include "affinity/partitions/partitions.hpp"
#include "affinity/power/power.hpp"
#include "affinity/quiet/quiet.hpp"
#include "affinity/quotas/quotas.hpp"
#include "tests/catch.hpp"
#include "tests/fake_cgroup_tree.hpp"
#include "tests/fake_cpu_power.hpp"
#include "tests/fake_kernel_threads.hpp"
#include "tests/fake_scheduling.hpp"
#include "tests/run_loop.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/line/scene.hpp"
#include "tests/unit/quiet/helper.hpp"

namespace ka::tests {

inline constexpr const char* kCgroup = "/kubepods/s1";
inline constexpr const char* kInIt = "/kubepods/s1/kata-affinity";

inline line::Options partition_options(bool partitions = true,
                                       policy::plan::Grade grade = policy::plan::Grade::kQuiet) {
  line::Options options = at_home();
  options.settings.grade = grade;
  options.settings.housekeeping = {policy::plan::Housekeeping::Kind::kCpus, {0, 1}};
  options.quiet.partitions = partitions;
  return options;
}

/// A VM of three vCPUs, threads 110 to 112, in a cgroup that allows all CPUs.
struct PartitionNode : LineScene {
  explicit PartitionNode(line::Options options = partition_options())
      : LineScene(8, std::move(options)) {
    boot_pod("s1", 100, 3);
    tree.add("/kubepods");
    tree.add(kCgroup);
    for (const int tid : {100, 101, 110, 111, 112}) tree.put(tid, kCgroup);
    start_helper();
    listen();
    follow();
    add_pod();
  }

  void add_pod() {
    policy::ledger::PodSeen pod{.id = "s1"};
    pod.vmm = policy::ProcessId{100, 0};
    REQUIRE(requests().submit({policy::ledger::Source::kApi, pod}));
    run_loop();
  }

  void listen() {
    socket.emplace(io, clock, temp.path() / "helper.sock");
    socket->answer = [this](const http::Request& one) {
      if (one.target == "/v1/quiet") return quiet_answer(one);
      return helper::respond({{helper::PartitionService::kPath, service->verb()},
                              {helper::PartitionService::kPowerPath, service->power_verb()},
                              {helper::QuotaService::kPath, quota_service->verb()}},
                             one);
    };
  }
  http::Response quiet_answer(const http::Request& one) const {
    http::Response response = FakeHelper::grant(one);
    const std::string head = R"({"cpus":")";
    if (!unit.empty()) {
      response.body =
          quiet_document(one.body.substr(head.size(), one.body.size() - head.size() - 2), unit);
    }
    return response;
  }
  void hang_up() {
    socket.reset();
    std::filesystem::remove(temp.path() / "helper.sock");
  }
  /// A helper that was killed, and is started again.
  void start_helper() {
    keeper.emplace(tree, scheduling, helper::VmmThreads(node.proc()), kernel_threads,
                   helper::RecordFile<helper::PartitionRecords>(record.parent_path(), "boot"),
                   logger);
    keeper->adopt();
    power.emplace(cpu_power, helper::RecordFile<helper::PowerRecords>(record.parent_path(), "boot"),
                  logger);
    service.emplace(*keeper, *power, [](const policy::CpuSet& cpus) { return cpus; });
    quota_keeper.emplace(cgroup_files,
                         helper::RecordFile<helper::QuotaRecords>(record.parent_path(), "boot"),
                         logger);
    quota_keeper->adopt();
    quota_service.emplace(*quota_keeper, cgroup_files, helper::VmmThreads(node.proc()), calls,
                          [](const policy::CpuSet& cpus) { return cpus; });
  }
  /// As a daemon does at its start.
  void follow() {
    const auto place = temp.path() / "helper.sock";
    quiet.emplace(io, clock, line().node(), quiet::Quiet::Places{place, temp.path()});
    partitions.emplace(io, clock, line().node(), partitions::Partitions::Places{place, temp.path()},
                       [this](const std::string& id) { line().refresh(id); });
    power_client.emplace(io, clock, line().node(), power::Power::Places{place, temp.path()});
    quota_client.emplace(io, clock, line().node(), quotas::Quotas::Places{place, temp.path()});
    quiet->start();
    partitions->start();
    power_client->start();
    quota_client->start();
    line().adopt();
    line().stop_waiting();
    run_loop();
  }
  void run_loop() { run_ready(io); }
  void own(const policy::CpuSet& cpus) {
    REQUIRE(container("s1", "app", cpus, true));
    run_loop();
  }
  void check_drift() {
    quiet->refresh();
    partitions->refresh();
    power_client->refresh();
    quota_client->refresh();
    run_loop();
  }
  /// Why there is no partition; empty: there is; "none": there is to be none.
  std::string problem() {
    const auto view = line().node().view("s1");
    return view && view->partition != nullptr ? view->partition->problem : "none";
  }
  bool is_quiet() {
    const auto view = line().node().view("s1");
    return view && view->grade && !view->grade->obstacle;
  }
  line::SandboxGrade grade() { return *line().node().view("s1")->grade; }
  std::size_t requested() const { return socket->requests.size(); }

  TempDir temp;
  FakeCgroupTree tree;
  FakeScheduling scheduling;
  FakeKernelThreads kernel_threads;
  std::string unit;  ///< that is left, as JSON
  std::string lines;
  log::Log logger = text_log(log::Level::kInfo, lines);
  boost::asio::io_context io;
  std::filesystem::path record = [this] {
    temp.write("kata-affinity/helper/lock", "");
    return temp.path() / "kata-affinity/helper/partitions.json";
  }();
  std::optional<FakeHelper> socket;
  std::optional<helper::PartitionKeeper> keeper;
  FakeCpuPower cpu_power;
  std::optional<helper::PowerKeeper> power;
  std::optional<helper::PartitionService> service;
  helper::CgroupTreeFiles cgroup_files{node.proc(), temp.path() / "no-systemd", clock};
  std::optional<helper::QuotaKeeper> quota_keeper;
  std::optional<helper::QuotaService> quota_service;
  std::optional<quiet::Quiet> quiet;
  std::optional<partitions::Partitions> partitions;
  std::optional<power::Power> power_client;
  std::optional<quotas::Quotas> quota_client;
};

}  // namespace ka::tests
