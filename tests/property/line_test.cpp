// The line on random histories: what the kernel has after every single write, and after them all.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/property/property.hpp"
#include "tests/unit/engine/scene.hpp"

using namespace ka;
using policy::CpuSet;
using tests::EngineScene;

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

struct Node : EngineScene {
  Node() : EngineScene(kCpus) {
    for (std::size_t i = 0; i < kSandboxes.size(); ++i) {
      const int pid = 100 * (static_cast<int>(i) + 1);
      boot_vm(pid, 2 + static_cast<int>(i));
      RC_ASSERT(add(kSandboxes[i], pid).has_value());
    }
    policy::PodSeen other;
    other.id = "r";
    RC_ASSERT(engine().submit({policy::Source::kApi, other}).has_value());
  }

  void take(const Step& step) {
    if (!step.cpus.empty()) {
      RC_ASSERT(container(step.pod, step.container, step.cpus, step.exclusive).has_value());
    } else {
      engine().handle({policy::Source::kApi, policy::ContainerGone{step.pod, step.container}});
    }
  }

  CpuSet foreign_to(int tid) {
    const auto sandbox = static_cast<std::size_t>(tid / 100 - 1);
    return engine().ledger().exclusive_to_others(kSandboxes[sandbox]);
  }
};

/// What may not depend on the order of events: all but which vCPU it is.
using Outline = std::tuple<CpuSet, CpuSet, CpuSet, std::vector<std::string>>;

Outline outline(const policy::SandboxPlan& plan) {
  std::vector<std::string> vcpus;
  for (const policy::VcpuPlan& vcpu : plan.vcpus) {
    vcpus.push_back(policy::format_list(vcpu.cpus) + vcpu.container +
                    (vcpu.role == policy::VcpuRole::kDedicated ? "!" : ""));
  }
  std::ranges::sort(vcpus);
  return {plan.mask, plan.housekeeping, plan.emulator, vcpus};
}

}  // namespace

TEST_CASE("no write lets a thread onto CPUs of another pod, and none is left to be made") {
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
      node.take(step);
      RC_ASSERT(broken == std::vector<std::string>{});
      RC_ASSERT(node.engine().reconcile_all().writes == 0);
      const bool room = node.engine().ledger().exclusive() != CpuSet::range(0, kCpus - 1);
      RC_ASSERT(!room || node.engine().verify().findings.empty());
    }
  });
}

TEST_CASE("the order, repetition and loss of events change only which vCPU it is") {
  property::holds("I7 over histories that end alike", [] {
    Node lived, told;
    std::map<Key, Step> last;
    const int steps = *rc::gen::inRange(1, 12);
    for (int i = 0; i < steps; ++i) {
      const Step step = any_step();
      RC_LOG() << step << '\n';
      lived.take(step);
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
    for (const std::size_t i : shuffled) told.take(others[i]);
    for (const std::string& id : kSandboxes) {
      RC_ASSERT(outline(lived.engine().view(id)->plan) == outline(told.engine().view(id)->plan));
    }
  });
}
