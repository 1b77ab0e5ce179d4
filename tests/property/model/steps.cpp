// SPDX-License-Identifier: Apache-2.0
#include "tests/property/model/steps.hpp"

#include <array>
#include <ostream>
#include <random>
#include <string_view>

namespace ka::model {
namespace {

struct Kind {
  What what;
  std::string_view name;
  unsigned weight;  ///< how often, of all weights
};

constexpr std::array kKinds = {
    Kind{What::kAdmit, "admit", 12},
    Kind{What::kRunPod, "run-pod", 18},
    Kind{What::kRunContainer, "run", 24},
    Kind{What::kExit, "exit", 3},
    Kind{What::kRemovePod, "remove", 7},
    Kind{What::kForget, "forget", 6},
    Kind{What::kReconcile, "reconcile", 5},
    Kind{What::kVmmEnds, "vmm-ends", 2},
    Kind{What::kPlug, "plug", 4},
    Kind{What::kUnplug, "unplug", 2},
    Kind{What::kMasks, "masks", 4},
    Kind{What::kFault, "fault", 4},
    Kind{What::kMend, "mend", 3},
    Kind{What::kOffline, "offline", 1},
    Kind{What::kOnline, "online", 2},
    Kind{What::kKubeletFile, "kubelet", 8},
    Kind{What::kDeliver, "deliver", 30},
    Kind{What::kDouble, "double", 3},
    Kind{What::kLose, "lose", 1},
    Kind{What::kRuntimeAway, "runtime-away", 2},
    Kind{What::kRuntimeBack, "back", 8},
    Kind{What::kKill, "kill", 2},
    Kind{What::kKillInWrite, "cut", 2},
    Kind{What::kDamage, "damage", 1},
    Kind{What::kTick, "tick", 12},
    Kind{What::kTimeout, "patience", 2},
    Kind{What::kQuiesce, "settle", 3},
    Kind{What::kKubeletAway, "kubelet-away", 2},
    Kind{What::kKubeletStale, "stale", 2},
    Kind{What::kKubeletNew, "kubelet-new", 2},
    Kind{What::kPin, "pin", 3},
    Kind{What::kUnpin, "unpin", 3},
    Kind{What::kRelease, "release", 4},
    Kind{What::kReclaim, "reclaim", 4},
    Kind{What::kLibvirtAway, "libvirt-away", 2},
    Kind{What::kLibvirtBack, "libvirt", 6},
};

unsigned sum_of_weights() {
  unsigned sum = 0;
  for (const Kind& kind : kKinds) sum += kind.weight;
  return sum;
}

What kind_at(unsigned weight) {
  for (const Kind& kind : kKinds) {
    if (weight < kind.weight) return kind.what;
    weight -= kind.weight;
  }
  return What::kTick;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Step& step) {
  for (const Kind& kind : kKinds) {
    if (kind.what == step.what) out << kind.name << ' ' << step.choice;
  }
  return out;
}

std::vector<Step> any_steps(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<Step> steps;
  const unsigned weights = sum_of_weights();
  while (steps.size() + 1 < count) {
    const auto weight = static_cast<unsigned>(random() % weights);
    steps.push_back({kind_at(weight), static_cast<std::uint32_t>(random() % 1000)});
  }
  steps.push_back({What::kQuiesce, 0});
  return steps;
}

}  // namespace ka::model
