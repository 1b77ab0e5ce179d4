// SPDX-License-Identifier: Apache-2.0
// A node with one of each thing that the helper changes, and a helper that may be killed at each of
// its writes.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "affinity/documents/partition.hpp"
#include "affinity/helper/guarded_threads.hpp"
#include "affinity/helper/interrupts.hpp"
#include "affinity/helper/keeper.hpp"
#include "affinity/helper/partition_keeper.hpp"
#include "affinity/helper/partition_service.hpp"
#include "affinity/helper/power_keeper.hpp"
#include "affinity/helper/queues.hpp"
#include "affinity/helper/quota_keeper.hpp"
#include "affinity/helper/rdt_keeper.hpp"
#include "affinity/helper/workqueues.hpp"
#include "tests/catch.hpp"
#include "tests/fake_cpu_power.hpp"
#include "tests/fake_resctrl.hpp"
#include "tests/property/kills/cut_writes.hpp"
#include "tests/unit/helper/partition_scene.hpp"

namespace ka::tests {

inline const std::string kContainer = "/kubepods/pod3/" + std::string(64, 'c');
/// Units of systemd.
inline const std::string kPodSlice = "/kubepods.slice/kubepods-pod4.slice";
inline const std::string kContainerScope =
    kPodSlice + "/cri-containerd-" + std::string(64, 'd') + ".scope";

/// What is requested of the helper, by all of its verbs.
struct Wanted {
  policy::CpuSet quiet, interrupts;
  std::vector<policy::Partition> partitions;
  std::string power = "[]";  ///< requests of power settings, in JSON
  std::vector<helper::RdtGroup> rdt;
  std::set<std::string> unlimited;  ///< cgroups without a CFS quota
};

/// Two VMMs, a container of runc (process 300), and what the kernel and systemd have for the host.
struct WholeNode : TwoVmms {
  WholeNode() {
    node.process(300, 1, "db", "/usr/bin/db");
    tree.add("/kubepods/pod3");
    tree.add(kContainer, {6, 7});
    tree.put(300, kContainer);
    // The controller is off below the VMM's cgroup, as Kata leaves it.
    REQUIRE(tree.write(kOne, "cgroup.subtree_control", "-cpuset\n"));
    scheduling.policies[101] = {3, 0};
    balancer = std::make_shared<FakeBalancer>();
    units = std::make_shared<FakeUnits>(scissors);
    units->files = {{"machine.slice", {0, 1, 2, 3}}, {"system.slice", kAll}};
    units->settings = {{"machine.slice", {0, 1, 2, 3}}};
    kernel_threads.masks = {{"89 276", kAll}, {"95 293", {2}}, {"99 1", {2, 4}}, {"97 1", {1}}};
    add_files();
    add_quotas();
    for (int cpu = 0; cpu < 8; ++cpu) add_power(cpu);
    REQUIRE(resctrl.make("theirs"));
    for (const int tid : {101, 102, 201}) resctrl.start(tid);
    resctrl.put(101, {"theirs", "watched"});
    resctrl.put(102, {"theirs", ""});
  }

  void add_files() const {
    node.write("proc/irq/default_smp_affinity", "ff\n");
    node.interrupt(24, "nvme0q1", "0-7");
    node.interrupt(25, "eth0", "2");
    node.interrupt(26, "usb", "6-7");
    node.write("sys/devices/virtual/workqueue/cpumask", "ff\n");
    node.write("sys/class/net/eth0/queues/rx-0/rps_cpus", "ff\n");
    node.write("sys/class/net/eth0/queues/tx-0/xps_cpus", "f\n");
  }
  void add_quotas() {
    tree.quotas = {{"/kubepods/pod1", "200000 100000"},
                   {kOne, "max 100000"},
                   {"/kubepods/pod3", "300000 100000"},
                   {kContainer, "50000 20000"}};
    for (const auto& [unit, text] :
         {std::pair{kPodSlice, "150000 100000"}, std::pair{kContainerScope, "20000 30000"}}) {
      unit_quotas.set(unit, text);
      tree.quotas[unit] = text;
    }
  }
  void add_power(int cpu) {
    const auto name = [cpu](const char* file) { return FakeCpuPower::name_of(cpu, file); };
    power.values[name("power/pm_qos_resume_latency_us")] = "0";
    power.values[name("cpufreq/scaling_available_governors")] = "performance powersave";
    power.values[name("cpufreq/scaling_governor")] = "powersave";
    power.values[name("cpufreq/energy_performance_preference")] = "balance_power";
    power.values[name("cpufreq/affected_cpus")] = std::to_string(cpu);
  }
  /// A driver that changes the preference along with the governor, and not back.
  void follow_power(int cpu, std::string_view file, const std::string& value) {
    if (file != "cpufreq/scaling_governor" || value != "performance") return;
    power.values[FakeCpuPower::name_of(cpu, "cpufreq/energy_performance_preference")] = value;
  }
  /// What the kernel does with its own threads where CPUs become isolated, or are so no more.
  void follow() {
    const std::string now = tree.isolated();
    if (std::exchange(isolated_, now) == now) return;
    kernel_threads.overwrite(kAll - *policy::parse_list<policy::CpuTag>(now));
  }

  /// In the order of all_host_masks().
  helper::AllHostMasks masks(helper::GuardedThreads::Overwritten overwritten) {
    using helper::Queues;
    const helper::Roots roots{node.proc(), node.sys(), {}, {}};
    const std::vector<std::shared_ptr<const helper::HostMasks>> kinds = {
        std::make_shared<helper::NewInterrupts>(roots),
        std::make_shared<helper::Interrupts>(roots),
        std::make_shared<helper::Workqueues>(roots),
        std::make_shared<helper::GuardedThreads>(
            std::make_unique<CutMasks>(threads_of_kernel(), scissors), std::move(overwritten)),
        std::make_shared<Queues>(roots, Queues::Direction::kReceive),
        std::make_shared<Queues>(roots, Queues::Direction::kTransmit),
        balancer,
        units};
    helper::AllHostMasks all;
    for (const auto& kind : kinds) all.push_back(std::make_unique<CutMasks>(kind, scissors));
    return all;
  }
  std::shared_ptr<const helper::HostMasks> threads_of_kernel() const {
    return {&kernel_threads, [](const helper::HostMasks*) {}};
  }

  /// All that the helper may have changed, as others see it.
  std::string text() const {
    std::ostringstream text;
    text << tree.text() << threads(100) << ' ' << threads(200) << ' ' << tree.where(300) << '\n';
    for (const int tid : {100, 101, 102, 200, 201, 202, 300}) {
      const helper::SchedulingPolicy policy = scheduling.of(tid);
      text << tid << ": " << policy.policy << ' ' << policy.priority << '\n';
    }
    for (const auto& [name, value] : power.values) text << name << ' ' << value << '\n';
    for (const std::string& group : resctrl.groups()) {
      text << group << '\n' << resctrl.schemata(group);
    }
    for (const int tid : {101, 102, 201}) text << tid << " in " << resctrl.where(tid) << '\n';
    for (const auto& [cgroup, quota] : tree.quotas) text << cgroup << " quota " << quota << '\n';
    for (const auto& [unit, quota] : unit_quotas.per_second) {
      text << unit << " quota a second " << quota << '\n';
    }
    put_masks(text);
    return text.str();
  }

  static constexpr int kCpus = 8;
  inline static const policy::CpuSet kAll = policy::CpuSet::range(0, kCpus - 1);

  Scissors scissors;
  FakeCpuPower power;
  FakeResctrl resctrl;
  FakeUnitQuotas unit_quotas;
  std::shared_ptr<FakeBalancer> balancer;
  std::shared_ptr<FakeUnits> units;

 private:
  void put_masks(std::ostringstream& text) const {
    const auto put = [&text](const std::string& name, const policy::CpuSet& cpus) {
      text << name << ' ' << policy::format_list(cpus) << '\n';
    };
    for (const auto& [name, cpus] : units->files) put("file of " + name, cpus);
    for (const auto& [name, cpus] : units->settings) put("setting of " + name, cpus);
    put("irqbalance", balancer->cpus);
    for (const auto& [name, cpus] : kernel_threads.masks) put("thread " + name, cpus);
    for (const int number : {24, 25, 26})
      text << number << ' ' << node.interrupt_cpus(number) << ' ';
    for (const char* file : {"irq/default_smp_affinity", "../sys/devices/virtual/workqueue/cpumask",
                             "../sys/class/net/eth0/queues/rx-0/rps_cpus",
                             "../sys/class/net/eth0/queues/tx-0/xps_cpus"}) {
      text << *base::read_file(node.proc() / file);
    }
  }

  std::string isolated_;
};

/// The helper's keepers, as affinity/helper/helper.cpp puts them together.
class CutHelper {
 public:
  explicit CutHelper(WholeNode& node)
      : tree_(node.tree, node.unit_quotas, node.scissors, [&node] { node.follow(); }),
        scheduling_(node.scheduling, node.scissors),
        cpu_power_(node.power, node.scissors,
                   [&node](int cpu, std::string_view file, const std::string& value) {
                     node.follow_power(cpu, file, value);
                   }),
        resctrl_(node.resctrl, node.scissors),
        kernel_threads_(node.threads_of_kernel(), node.scissors),
        keeper_(
            node.masks({[this](const std::string& thread) { return service_.overwritten(thread); },
                        [this](const std::string& thread) { service_.forget_overwritten(thread); },
                        [this] { service_.save_overwritten(); }}),
            file<helper::MaskRecords>(node), node.logger),
        partitions_(tree_, scheduling_, helper::VmmThreads(node.node.proc()), kernel_threads_,
                    file<helper::PartitionRecords>(node), node.logger),
        power_(cpu_power_, file<helper::PowerRecords>(node), node.logger),
        rdt_(resctrl_, helper::VmmThreads(node.node.proc()), file<helper::RdtRecords>(node),
             node.logger),
        quotas_(tree_, file<helper::QuotaRecords>(node), node.logger),
        service_(partitions_, power_, [](const policy::CpuSet& cpus) { return cpus; }) {
    keeper_.adopt();
    rdt_.adopt();
    partitions_.adopt();
    power_.adopt();
    quotas_.adopt();
  }

  void request(const Wanted& wanted) {
    keep_off(wanted.quiet, wanted.interrupts);
    boost::json::array partitions;
    for (const auto& one : wanted.partitions) partitions.push_back(documents::to_json(one));
    const auto partitioned = service_.verb().post(
        boost::json::serialize(boost::json::object{{"partitions", std::move(partitions)}}));
    REQUIRE(partitioned);
    const auto powered = service_.power_verb().post(R"({"cpus":)" + wanted.power + '}');
    REQUIRE(powered);
    rdt_.keep(wanted.rdt);
    unlimited_ = wanted.unlimited;
    quotas_.keep(wanted.unlimited);
    for (int i = 0; i < kChecks; ++i) check();
  }
  /// As its timer does.
  void check() {
    if (service_.holds()) service_.check();
    if (keeper_.holds()) keep_off(keeper_.quiet(), keeper_.interrupts());
    if (rdt_.holds()) rdt_.check();
    if (quotas_.holds()) quotas_.check();
  }
  bool holds() const {
    return keeper_.holds() || rdt_.holds() || quotas_.holds() || service_.holds();
  }

  /// What is in the way of anything; empty: nothing.
  std::string problems() const {
    std::string text = keeper_.state().problem + partitions_.state().problem + power_.problem() +
                       power_.problem_of(WholeNode::kAll) + rdt_.state().problem +
                       quotas_.problem();
    for (const std::string& cgroup : unlimited_) text += quotas_.problem_of(cgroup);
    for (const auto& one : partitions_.state().partitions) text += one.problem + one.not_realtime;
    for (const auto& group : rdt_.state().groups) {
      text += group.problem;
      for (const auto& task : group.tasks) text += task.problem;
    }
    return text;
  }

 private:
  static constexpr int kChecks = 3;  ///< one waits for what another one does

  template <typename Records>
  static helper::RecordFile<Records> file(const WholeNode& node) {
    return {node.dir.path(), "boot"};
  }
  void keep_off(const policy::CpuSet& quiet, const policy::CpuSet& interrupts) {
    keeper_.keep_off(quiet, WholeNode::kAll - quiet - interrupts, interrupts);
  }

  CutTree tree_;
  CutScheduling scheduling_;
  CutPower cpu_power_;
  CutResctrl resctrl_;
  CutMasks kernel_threads_;
  helper::Keeper keeper_;
  helper::PartitionKeeper partitions_;
  helper::PowerKeeper power_;
  helper::RdtKeeper rdt_;
  helper::QuotaKeeper quotas_;
  std::set<std::string> unlimited_;
  helper::PartitionService service_;
};

}  // namespace ka::tests
