// SPDX-License-Identifier: Apache-2.0
// A day of pods on a node of 256 CPUs: the same pods come and go by kubelet's rules, with each
// policy of its topology manager, and by ours. Prints a table, and draws refusals and splits.
//
//   bench_churn [SVG]
#include <fmt/core.h>

#include <ctime>
#include <fstream>
#include <queue>
#include <random>

#include "policy/allocate/allocate.hpp"
#include "policy/allocate/life.hpp"
#include "tests/bench/allocate/scenes.hpp"

using namespace ka::policy;
using namespace ka::policy::allocate;

namespace {

constexpr int kPods = 20000;

struct Pod {
  std::vector<PodContainer> containers;
  int lifetime = 0;  ///< in pods
};

PodContainer container(const char* name, PodPart part, int cpus) {
  return {name, part, {.use = CpuUse::kExclusive, .cpus = cpus}};
}

/// Mostly small pods, now and then one larger than a node; one in ten has an init container. Their
/// lifetimes keep the node nearly full. Even numbers of CPUs, so that all can be on whole cores.
std::vector<Pod> day_of_pods(bool even) {
  std::mt19937 random(20240611);
  const int sizes[] = {1, 1, 2, 2, 3, 4, 4, 4, 5, 8, 8, 12, 16, 24, 48};
  std::vector<Pod> pods;
  for (int i = 0; i < kPods; ++i) {
    int size = sizes[random() % std::size(sizes)];
    if (even) size += size % 2;
    Pod pod{{}, 2 + static_cast<int>(random() % 44)};
    if (random() % 10 == 0) pod.containers.push_back(container("init", PodPart::kInit, 2 * size));
    pod.containers.push_back(container("app", PodPart::kApp, size));
    pods.push_back(std::move(pod));
  }
  return pods;
}

struct Strategy {
  std::string name;
  OptionSet options;
  const Pipeline& policy;
  HintPolicy hints = HintPolicy::kNone;
  Life::InitCpus inits = Life::InitCpus::kFreed;
};

struct Day {
  Toll toll;
  double broken = 0;        ///< mean share of the free CPUs whose core is in use
  double microseconds = 0;  ///< of CPU time, for each pod
};

Day live(const Machine& machine, const Strategy& strategy) {
  const std::vector<Pod> pods = day_of_pods(strategy.options.has(CpuOption::kFullPcpusOnly));
  Life life(machine,
            Holdings(machine, {}, strategy.options, strategy.policy, {.policy = strategy.hints}),
            strategy.inits);
  using End = std::pair<int, std::string>;
  std::priority_queue<End, std::vector<End>, std::greater<>> running;
  Day day;
  const std::clock_t begin = std::clock();
  for (int now = 0; now < kPods; ++now) {
    for (; !running.empty() && running.top().first <= now; running.pop()) {
      life.remove(running.top().second);
    }
    const Pod& pod = pods[static_cast<std::size_t>(now)];
    const std::string name = std::to_string(now);
    if (life.add(name, pod.containers)) running.emplace(now + pod.lifetime, name);
    day.broken += life.broken() / kPods;
  }
  day.microseconds = 1e6 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / kPods;
  day.toll = life.toll();
  return day;
}

double percent(int part, int whole) { return whole == 0 ? 0 : 100.0 * part / whole; }

std::string bar(int y, double value, const char* colour) {
  return fmt::format(
      "<rect x='200' y='{}' width='{:.1f}' height='12' fill='{}'/>\n"
      "<text x='{:.1f}' y='{}' font-size='12'>{:.1f} %</text>\n",
      y, 8 * value, colour, 206 + 8 * value, y + 11, value);
}

std::string bars(const Strategy& strategy, const Day& day, int row) {
  const int y = 44 + 52 * row;
  const Toll& toll = day.toll;
  return fmt::format("<text x='190' y='{}' text-anchor='end'>{}</text>\n", y + 26, strategy.name) +
         bar(y, percent(toll.refused, toll.pods), "#d62728") +
         bar(y + 14, percent(toll.split_nodes, toll.containers), "#1f77b4") +
         bar(y + 28, percent(toll.split_l3s, toll.containers), "#7fb2d9");
}

constexpr const char* kStyle =
    "<style>text{fill:#1f2328}"
    "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}}</style>\n";

constexpr const char* kLegend =
    "<rect x='10' y='10' width='14' height='14' fill='#d62728'/>"
    "<text x='30' y='22'>pods refused</text>"
    "<rect x='150' y='10' width='14' height='14' fill='#1f77b4'/>"
    "<text x='170' y='22'>containers on more nodes than needed</text>"
    "<rect x='472' y='10' width='14' height='14' fill='#7fb2d9'/>"
    "<text x='492' y='22'>on more L3 caches than needed</text>\n";

void draw(const char* file, const std::string& rows, int count) {
  const int height = 50 + 52 * count;
  std::ofstream(file)
      << fmt::format(
             "<svg xmlns='http://www.w3.org/2000/svg' width='830' height='{0}' "
             "viewBox='0 0 830 {0}' font-family='system-ui,sans-serif' font-size='14'>\n",
             height)
      << kStyle << kLegend << rows << "</svg>\n";
}

}  // namespace

int main(int argc, char** argv) {
  using enum CpuOption;
  using enum HintPolicy;
  const auto kept = Life::InitCpus::kKept;
  const Strategy strategies[] = {
      {"kubelet, none", {}, packed_policy(), kNone, kept},
      {"kubelet, best-effort", {}, packed_policy(), kBestEffort, kept},
      {"kubelet, restricted", {}, packed_policy(), kRestricted, kept},
      {"kubelet, single-numa-node", {}, packed_policy(), kSingleNumaNode, kept},
      {"packed", {}, packed_policy()},
      {"packed, whole L3 caches", {kPreferAlignByUncoreCache}, packed_policy()},
      {"packed, full-pcpus-only", {kFullPcpusOnly}, packed_policy()},
      {"packed, across cores", {kDistributeAcrossCores}, packed_policy()},
      {"distributed", {kDistributeAcrossNuma}, distributed_policy()},
      {"fitted", {}, fitted_policy()},
  };
  const Machine machine = ka::bench::large_machine();
  std::string rows;
  int row = 0;
  fmt::print(
      "| rules | refused | split: nodes | sockets | L3s | cores | free on broken cores | CPU time "
      "per pod |\n");
  fmt::print("|---|---|---|---|---|---|---|---|\n");
  for (const Strategy& strategy : strategies) {
    const Day day = live(machine, strategy);
    const Toll& toll = day.toll;
    const auto share = [&](int split) { return percent(split, toll.containers); };
    fmt::print(
        "| {} | {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} % | {:.0f} us |\n",
        strategy.name, percent(toll.refused, toll.pods), share(toll.split_nodes),
        share(toll.split_sockets), share(toll.split_l3s), share(toll.split_cores), 100 * day.broken,
        day.microseconds);
    rows += bars(strategy, day, row++);
  }
  if (argc > 1) draw(argv[1], rows, row);
}
