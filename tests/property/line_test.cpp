// SPDX-License-Identifier: Apache-2.0
// The line on random histories: what the kernel has after every single write, and after them all.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/property/property.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using policy::CpuSet;
using tests::LineScene;

namespace {

constexpr int kCpus = 8;
/// Sandboxes by name; the thread ids of the nth begin with 100 * (n + 1). "r" is a pod without a
/// VM.
const std::vector<std::string> kSandboxes = {"a", "b", "c"};

/// A container is told of, or is gone (no `cpus`).
struct Step {
  std::string pod, container;
  CpuSet cpus;
  bool exclusive = false;
};

using Key = std::pair<std::string, std::string>;

std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << step.pod << '/' << step.container << ' ' << policy::format_list(step.cpus)
             << (step.exclusive ? "!" : "");
}

Step any_step() {
  Step step;
  step.pod = *rc::gen::element<std::string>("a", "b", "c", "r");
  step.container = *rc::gen::element<std::string>("x", "y");
  const int bits = *rc::gen::inRange(0, 1 << kCpus);
  for (int cpu = 0; cpu < kCpus; ++cpu) {
    if ((bits >> cpu & 1) != 0) step.cpus.add(cpu);
  }
  step.exclusive = *rc::gen::arbitrary<bool>();
  return step;
}

line::Options any_options() {
  line::Options options;
  options.settings.housekeeping.kind = *rc::gen::element(
      policy::plan::Housekeeping::Kind::kSandbox, policy::plan::Housekeeping::Kind::kSharedPool);
  return options;
}

struct Node : LineScene {
  explicit Node(line::Options options = any_options()) : LineScene(kCpus, std::move(options)) {
    for (std::size_t i = 0; i < kSandboxes.size(); ++i) {
      const int pid = 100 * (static_cast<int>(i) + 1);
      boot_vm(pid, 2 + static_cast<int>(i));
      RC_ASSERT(add(kSandboxes[i], pid).has_value());
    }
    policy::ledger::PodSeen other;
    other.id = "r";
    RC_ASSERT(requests().submit({policy::ledger::Source::kApi, other}).has_value());
  }

  void apply(const Step& step) {
    if (!step.cpus.empty()) {
      RC_ASSERT(container(step.pod, step.container, step.cpus, step.exclusive).has_value());
    } else {
      line().handle(
          {policy::ledger::Source::kApi, policy::ledger::ContainerGone{step.pod, step.container}});
    }
  }

  CpuSet foreign_to(int tid) {
    const auto sandbox = static_cast<std::size_t>(tid / 100 - 1);
    return line().node().ledger().exclusive_to_others(kSandboxes[sandbox]);
  }
};

/// The same with managed cgroups, which Kata writes behind our back, each time before we are told;
/// that it wrote is noticed after that.
struct ManagedNode : LineScene {
  explicit ManagedNode(bool forgets) : LineScene(kCpus, options()) {
    for (std::size_t i = 0; i < kSandboxes.size(); ++i) {
      const int pid = 100 * (static_cast<int>(i) + 1);
      boot_pod(kSandboxes[i], pid, 2 + static_cast<int>(i));
      for (int tid : {pid, pid + 1}) tids.push_back(tid);
      for (int vcpu = 0; vcpu < 2 + static_cast<int>(i); ++vcpu) tids.push_back(pid + 10 + vcpu);
      RC_ASSERT(add(kSandboxes[i], pid).has_value());
    }
    calls.before_write = [this](int) { record_masks(); };
    calls.after_write = [this](int tid) { check("thread " + std::to_string(tid)); };
    cpusets.before_write = [this](const std::string&) { record_masks(); };
    cpusets.after_write = [this, forgets](const std::string& name) {
      if (forgets) forget(name);
      check(name);
    };
  }

  static line::Options options() {
    line::Options options = any_options();
    options.settings.manage_cgroup = true;
    return options;
  }

  void apply(const Step& step) {
    containers[{step.pod, step.container}] = step.cpus;
    CpuSet all;
    for (const auto& [key, cpus] : containers) {
      if (key.first == step.pod) all |= cpus;
    }
    const bool is_vm = std::ranges::count(kSandboxes, step.pod) > 0;
    if (is_vm && !all.empty()) cpusets.make("pods/" + step.pod, all);
    if (!step.cpus.empty()) {
      line().handle({policy::ledger::Source::kApi,
                     policy::ledger::whole_report(
                         step.pod, {.id = step.container, .cpus = step.cpus}, step.exclusive)});
    } else {
      line().handle(
          {policy::ledger::Source::kApi, policy::ledger::ContainerGone{step.pod, step.container}});
    }
    line().cgroup_written((node.cgroup() / "pods" / step.pod).string());
  }

  /// Before Linux 6.2 a write to a cpuset makes the kernel forget the masks of its threads.
  void forget(const std::string& name) {
    const auto pod = std::ranges::find(kSandboxes, name.substr(name.rfind('/') + 1));
    const auto number = static_cast<int>(pod - kSandboxes.begin()) + 1;
    std::erase_if(calls.own, [&](const auto& entry) { return entry.first / 100 == number; });
  }

  void record_masks() {
    before.clear();
    for (const int tid : tids) before[tid] = calls.effective(tid);
  }

  void check(const std::string& write) {
    for (const int tid : tids) {
      const auto& sandbox = kSandboxes[static_cast<std::size_t>(tid / 100 - 1)];
      const CpuSet gained = calls.effective(tid) - before[tid];
      const CpuSet foreign = gained & line().node().ledger().exclusive_to_others(sandbox);
      if (foreign.empty()) continue;
      broken.push_back(write + " let " + std::to_string(tid) + " onto " +
                       policy::format_list(foreign));
    }
  }

  std::vector<int> tids;
  std::map<Key, CpuSet> containers;
  std::map<int, CpuSet> before;
  std::vector<std::string> broken;
};

/// What may not depend on the order of events: all but which vCPU it is.
using Outline = std::tuple<CpuSet, CpuSet, CpuSet, std::vector<std::string>>;

/// It floats for nobody until its container may use its CPUs again: which one does is history's.
bool is_held(const policy::plan::SandboxPlan& plan, const policy::plan::VcpuPlan& vcpu) {
  return std::ranges::any_of(plan.warnings, [&](const policy::plan::Note& note) {
    return note.code == policy::plan::Code::kNoUsableCpu && note.subject == vcpu.container;
  });
}

Outline outline(const policy::plan::SandboxPlan& plan) {
  std::vector<std::string> vcpus;
  for (const policy::plan::VcpuPlan& vcpu : plan.vcpus) {
    vcpus.push_back(policy::format_list(vcpu.cpus) + (is_held(plan, vcpu) ? "" : vcpu.container) +
                    (vcpu.role == policy::plan::VcpuRole::kDedicated ? "!" : ""));
  }
  std::ranges::sort(vcpus);
  return {plan.mask, plan.housekeeping, plan.roles[policy::Role::kEmulator], vcpus};
}

}  // namespace

TEST_CASE("no write lets a thread onto another pod's CPUs, and no write is missing") {
  property::holds("I2 between any two writes, I6 after them", [] {
    Node node;
    std::vector<std::string> broken;
    node.calls.after_write = [&](int tid) {
      const CpuSet on = node.calls.effective(tid) & node.foreign_to(tid);
      if (!on.empty()) broken.push_back(std::to_string(tid) + " on " + policy::format_list(on));
    };
    const int steps = *rc::gen::inRange(1, 12);
    for (int i = 0; i < steps; ++i) {
      const Step step = any_step();
      RC_LOG() << step << '\n';
      node.apply(step);
      RC_ASSERT(broken == std::vector<std::string>{});
      RC_ASSERT(node.line().reconcile_all().writes == 0);
      const bool room = node.line().node().ledger().exclusive() != CpuSet::range(0, kCpus - 1);
      RC_ASSERT(!room || node.verifier().verify().ok());
    }
  });
}

TEST_CASE("no write to a managed cgroup lets a thread onto another pod's CPUs") {
  property::holds("I2 between any two writes of cgroups and threads", [] {
    ManagedNode node(*rc::gen::arbitrary<bool>());
    const int steps = *rc::gen::inRange(1, 12);
    for (int i = 0; i < steps; ++i) {
      const Step step = any_step();
      RC_LOG() << step << '\n';
      node.apply(step);
      RC_ASSERT(node.broken == std::vector<std::string>{});
      node.cpusets.writes.clear();
      RC_ASSERT(node.line().reconcile_all().writes == 0);
      RC_ASSERT(node.cpusets.writes.empty());
      const bool room = node.line().node().ledger().exclusive() != CpuSet::range(0, kCpus - 1);
      RC_ASSERT(!room || node.verifier().verify().ok());
    }
  });
}

TEST_CASE("order, repetition and loss of events change only which vCPU serves a CPU") {
  property::holds("I7 over histories that end alike", [] {
    const line::Options options = any_options();
    Node continuous(options), reported(options);
    std::map<Key, Step> last;
    const int steps = *rc::gen::inRange(1, 12);
    for (int i = 0; i < steps; ++i) {
      const Step step = any_step();
      RC_LOG() << step << '\n';
      continuous.apply(step);
      last[{step.pod, step.container}] = step;
    }
    std::vector<Step> others;
    for (const auto& [key, step] : last) {
      others.insert(others.end(), static_cast<std::size_t>(*rc::gen::inRange(1, 3)), step);
    }
    const auto order =
        *rc::gen::container<std::vector<int>>(others.size(), rc::gen::arbitrary<int>());
    std::vector<std::size_t> shuffled(others.size());
    for (std::size_t i = 0; i < shuffled.size(); ++i) shuffled[i] = i;
    std::ranges::sort(shuffled, {}, [&](std::size_t i) { return order[i]; });
    for (const std::size_t i : shuffled) reported.apply(others[i]);
    for (const std::string& id : kSandboxes) {
      RC_ASSERT(outline(continuous.line().node().view(id)->plan) ==
                outline(reported.line().node().view(id)->plan));
    }
  });
}
