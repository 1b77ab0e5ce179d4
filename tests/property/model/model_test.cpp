// SPDX-License-Identifier: Apache-2.0
// A node and its troubles: pods come and go, VMs are plugged, VMMs die and strangers get their
// numbers, CPUs go offline; daemon, runtime and kubelet restart, kubelet also without its state.
// What NRI calls can come twice, and not at all while the runtime is away; what the shim proxy and
// Kata's persist.json report is lost, doubled, late and out of order; kubelet's file is read late,
// is gone, cannot be read, or is an old one. In its place there may be kubelet's PodResources API,
// which answers late, with an old answer, or not at all, or dra-driver-cpu's directory. An operator
// releases sandboxes and takes them back. On some nodes the daemon manages the cgroups, which Kata
// writes, too. On some there are domains of libvirt, which neither the runtime nor kubelet knows.
//
// After each step: I2 for each write, and that nothing is widened while an owner is unknown; I9;
// that nothing is forgotten, and that who had to leave a CPU has left. After each step that leaves
// the daemon nothing to see or do: I1 to I6 and I8, by what it was told, and by its own `verify`
// (I5 by that alone); what is released has the masks and the cgroup of before, and keeps them.
// After `settle`, when all has been told: the same by the node as it is, that a plan is not written
// twice, and I7, which takes a restart.
//
// 20,000 steps; in the environment KATA_AFFINITY_MODEL_STEPS says how many else,
// KATA_AFFINITY_MODEL_SEED where to begin (that of a failure plays it alone, with STEPS=1), and
// KATA_AFFINITY_MODEL_CGROUP a directory of cgroup v2 to be made: then the VMMs are processes, too,
// and the kernel has to agree with the model's after each step. That takes root, and a machine with
// 8 CPUs that nothing else needs.
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/property/model/play.hpp"
#include "tests/property/model/steps.hpp"

using namespace ka;

namespace {

constexpr std::size_t kLength = 100;

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

model::Setup setup_of(std::uint64_t seed) {
  model::Setup setup = model::any_setup(seed);
  const char* cgroup = std::getenv("KATA_AFFINITY_MODEL_CGROUP");
  if (cgroup == nullptr) return setup;
  setup.cgroup = cgroup;
  setup.forgets = model::RealKernel::forgets();
  return setup;
}

struct Played {
  std::string failure;    ///< empty: nothing is wrong
  std::size_t steps = 0;  ///< as many as that took
  std::uint64_t writes = 0, rests = 0;
};

Played play(const model::Setup& setup, const std::vector<model::Step>& steps) {
  model::Play play(setup);
  Played played;
  while (played.steps < steps.size() && played.failure.empty()) {
    played.failure = play.perform(steps[played.steps++]);
  }
  played.writes = play.writes();
  played.rests = play.rests();
  return played;
}

/// The shortest history of that kind, for people.
std::string explained(const model::Setup& setup, std::vector<model::Step> steps) {
  steps = model::shortest(std::move(steps), [&](const std::vector<model::Step>& fewer) {
    return !play(setup, fewer).failure.empty();
  });
  std::ostringstream text;
  for (const model::Step& step : steps) text << "\n  " << step;
  text << "\n" << play(setup, steps).failure;
  return text.str();
}

}  // namespace

TEST_CASE(
    "whatever happens to a node, nobody is let onto CPUs of others, and nothing is forgotten") {
  const std::uint64_t wanted = number_of("KATA_AFFINITY_MODEL_STEPS", 20000);
  std::uint64_t seed = number_of("KATA_AFFINITY_MODEL_SEED", 20240607);
  std::uint64_t done = 0, failed = 0, writes = 0, rests = 0;
  for (; done < wanted; ++seed) {
    const model::Setup setup = setup_of(seed);
    auto steps = model::any_steps(seed, kLength);
    const Played played = play(setup, steps);
    done += played.steps;
    writes += played.writes;
    rests += played.rests;
    if (played.failure.empty()) continue;
    steps.resize(played.steps);
    FAIL_CHECK("seed " << seed << ", " << played.steps
                       << " steps, the shortest:" << explained(setup, steps));
    if (++failed == 3) break;
  }
  std::cout << "model: " << done << " steps, " << writes
            << " masks written, all invariants checked after " << rests << " steps, " << failed
            << " histories failed, last seed " << seed - 1 << '\n';
}
