// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/line/scene.hpp"

#include <utility>

#include "affinity/registry/registry.hpp"
#include "affinity/state/store.hpp"
#include "tests/catch.hpp"
#include "tests/text_log.hpp"

namespace ka::tests {

policy::Topology flat_machine(int cpus) {
  std::vector<policy::Cpu> list;
  for (int i = 0; i < cpus; ++i) list.push_back({i, i, 0, 0, 0});
  return *policy::Topology::make(std::move(list));
}

line::Options at_home() {
  line::Options options;
  options.settings.housekeeping.kind = policy::plan::Housekeeping::Kind::kSandbox;
  return options;
}

struct LineScene::Daemon {
  explicit Daemon(LineScene& scene)
      : board(scene.clock),
        store(scene.state_dir(), "boot", scene.log_),
        registry(store, board, scene.log_, scene.clock),
        node(scene.topology, scene.options_,
             {scene.node.proc(), scene.node.debugfs(), scene.node.cgroup(), scene.node.sys()},
             {scene.calls, scene.cpusets}, registry, board, scene.clock),
        line(node),
        requests(node, line),
        verifier(node),
        notifications(board.feed().subscribe([&scene](const board::Notification& notification) {
          scene.notified.emplace_back(board::kind_name(notification.kind));
        })) {}

  board::Board board;
  state::Store store;
  registry::Registry registry;
  line::Node node;
  line::Line line;
  line::Requests requests;
  line::Verifier verifier;
  board::Subscription notifications;
};

LineScene::LineScene(int cpus, line::Options options)
    : machine(policy::CpuSet::range(0, cpus - 1)),
      topology(flat_machine(cpus)),
      calls(machine),
      cpusets(node.cgroup()),
      options_(std::move(options)),
      log_(tests::text_log(log::Level::kWarning, log_lines)) {
  node.cgroup_v2();
  cpusets.make("", machine);
  start();
}

LineScene::~LineScene() = default;

void LineScene::start() {
  daemon_.reset();
  std::filesystem::create_directories(temp_.path() / "state");
  daemon_ = std::make_unique<Daemon>(*this);
}

void LineScene::boot_vm(int pid, int vcpus) {
  node.process(pid, 1, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
  node.thread(pid, pid + 1, "IO io1");
  for (int i = 0; i < vcpus; ++i) plug(pid, i);
  node.in_cgroup(pid, "vms", policy::format_list(machine));
}

void LineScene::boot_two(int vcpus, const std::string& first, const std::string& second) {
  for (const int pid : {100, 200}) boot_vm(pid, vcpus);
  REQUIRE(add(first, 100));
  REQUIRE(add(second, 200));
}

void LineScene::boot_pod(const std::string& id, int pid, int vcpus) {
  boot_vm(pid, vcpus);
  const std::string cgroup = "pods/" + id;
  cpusets.make("pods", {});
  cpusets.make(cgroup, {});
  node.in_cgroup(pid, cgroup, policy::format_list(machine));
  cgroups_[pid] = cgroup;
  calls.cgroup_of = [this](int tid) {
    const auto found = cgroups_.find(tid / 100 * 100);
    return found == cgroups_.end() ? machine : cpusets.effective(found->second);
  };
}

void LineScene::plug(int pid, int vcpu) {
  const int tid = pid + 10 + vcpu;
  node.thread(pid, tid, "CPU " + std::to_string(vcpu) + "/KVM");
  node.kvm_vcpu(std::to_string(pid) + "-9", vcpu, tid);
}

base::Result<board::Outcome> LineScene::add(const std::string& id, int pid) {
  policy::ledger::PodSeen pod;
  pod.id = id;
  pod.vmm = policy::ProcessId{pid, 0};
  return requests().submit({policy::ledger::Source::kApi, pod});
}

base::Result<board::Outcome> LineScene::container(const std::string& sandbox, const std::string& id,
                                                  policy::CpuSet cpus, bool exclusive) {
  policy::ContainerFacts facts;
  facts.id = id;
  facts.cpus = std::move(cpus);
  return requests().submit(
      {policy::ledger::Source::kApi, policy::ledger::whole_report(sandbox, facts, exclusive)});
}

base::Result<board::Outcome> LineScene::remove(const std::string& sandbox) {
  return requests().submit({policy::ledger::Source::kApi, policy::ledger::PodGone{sandbox}});
}

std::vector<line::Finding> LineScene::broken() {
  std::vector<line::Finding> findings = verifier().verify().findings;
  std::erase_if(findings, [](const line::Finding& finding) {
    return finding.severity == line::Severity::kNote ||
           finding.severity == line::Severity::kDegraded;
  });
  return findings;
}

line::Line& LineScene::line() { return daemon_->line; }
line::Requests& LineScene::requests() { return daemon_->requests; }
line::Verifier& LineScene::verifier() { return daemon_->verifier; }
board::Board& LineScene::board() { return daemon_->board; }

}  // namespace ka::tests
