// SPDX-License-Identifier: Apache-2.0
// A day of pods on a node of 256 CPUs: 100,000 requests that come and go, the same for every
// strategy. Prints a table, and draws how broken the free CPUs are over the day.
//
//   bench_churn [SVG]
#include <fmt/core.h>

#include <ctime>
#include <fstream>
#include <queue>

#include "policy/allocate/allocate.hpp"
#include "tests/bench/allocate/scenes.hpp"

using namespace ka::policy;

namespace {

constexpr int kRequests = 100000;
constexpr int kSamples = 200;

struct Pod {
  int cpus = 0;
  int lifetime = 0;  ///< in requests
};

/// Mostly small pods, now and then one larger than a node; their lifetimes keep the node nearly
/// full.
std::vector<Pod> day_of_pods() {
  std::mt19937 random(20240611);
  const int sizes[] = {1, 1, 2, 2, 3, 4, 4, 4, 5, 8, 8, 12, 16, 24, 48};
  std::vector<Pod> pods;
  for (int i = 0; i < kRequests; ++i) {
    const int size = sizes[random() % std::size(sizes)];
    pods.push_back({size, 2 + static_cast<int>(random() % 44)});
  }
  return pods;
}

struct Strategy {
  std::string name;
  OptionSet options;
  std::string colour;
  const Pipeline& policy;
};

struct Day {
  double broken = 0;  ///< mean share of the free CPUs whose core is in use
  int refused = 0;
  int fits_node = 0;        ///< requests that are not larger than a node
  int cross_node = 0;       ///< those of them that got CPUs of several
  double microseconds = 0;  ///< of CPU time, for each request
  std::vector<double> samples;
};

class Node {
 public:
  explicit Node(const Machine& machine) : machine_(machine), free_(machine.cpus()) {}

  void release_until(int now) {
    for (; !running_.empty() && running_.top().end <= now; running_.pop()) {
      free_ |= running_.top().cpus;
    }
  }

  void start(CpuSet cpus, int end) {
    free_ -= cpus;
    running_.push({end, std::move(cpus)});
  }

  const CpuSet& free() const { return free_; }

  double broken() const {
    if (free_.empty()) return 0;
    return 1.0 - static_cast<double>(machine_.whole_cores_in(free_).size()) / free_.size();
  }

 private:
  struct Running {
    int end = 0;
    CpuSet cpus;
    bool operator<(const Running& other) const { return end > other.end; }
  };

  const Machine& machine_;
  CpuSet free_;
  std::priority_queue<Running> running_;
};

void place(const Machine& machine, const Strategy& strategy, const Pod& pod, int now, Node& node,
           Day& day) {
  CpuRequest request{.cpus = pod.cpus, .available = node.free(), .options = strategy.options};
  // Who wants whole cores has to ask for them.
  if (strategy.options.has(CpuOption::kFullPcpusOnly)) request.cpus += request.cpus % 2;
  auto answer = allocate(machine, request, strategy.policy);
  const bool fits = pod.cpus <= machine.group(CpuLevel::kNode, 0).size;
  if (!answer) {
    ++day.refused;
    return;
  }
  if (fits) {
    ++day.fits_node;
    if (machine.topology().nodes_of(answer->cpus).size() > 1) ++day.cross_node;
  }
  node.start(std::move(answer->cpus), now + pod.lifetime);
}

Day live(const Machine& machine, const Strategy& strategy, const std::vector<Pod>& pods) {
  Day day;
  Node node(machine);
  double since_sample = 0;
  const std::clock_t begin = std::clock();
  for (int now = 0; now < kRequests; ++now) {
    node.release_until(now);
    place(machine, strategy, pods[static_cast<std::size_t>(now)], now, node, day);
    const double broken = node.broken();
    day.broken += broken / kRequests;
    since_sample += broken;
    if ((now + 1) % (kRequests / kSamples) != 0) continue;
    day.samples.push_back(since_sample * kSamples / kRequests);
    since_sample = 0;
  }
  day.microseconds = 1e6 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / kRequests;
  return day;
}

std::string curve(const Strategy& strategy, const Day& day, int row) {
  std::string points;
  for (std::size_t i = 0; i < day.samples.size(); ++i) {
    points += fmt::format("{},{:.1f} ", 60 + 3 * i, 260 - 240 * day.samples[i]);
  }
  const int y = 30 + 18 * row;
  return fmt::format(
      "<polyline points='{}' fill='none' stroke='{}' stroke-width='1.5'/>\n"
      "<text x='680' y='{}' fill='{}'>{}</text>\n",
      points, strategy.colour, y, strategy.colour, strategy.name);
}

std::string axes() {
  std::string svg;
  for (int percent = 0; percent <= 100; percent += 25) {
    const int y = 260 - 240 * percent / 100;
    svg += fmt::format(
        "<line x1='60' y1='{}' x2='660' y2='{}' stroke='#ddd'/>\n"
        "<text x='52' y='{}' text-anchor='end'>{} %</text>\n",
        y, y, y + 4, percent);
  }
  return svg +
         "<text x='360' y='285' text-anchor='middle'>100,000 requests; share of the free CPUs "
         "whose core is in use</text>\n";
}

void draw(const char* file, const std::string& curves) {
  std::ofstream(file) << "<svg xmlns='http://www.w3.org/2000/svg' width='960' height='300' "
                         "font-family='sans-serif' font-size='12'>\n"
                         "<rect width='960' height='300' fill='white'/>\n"
                      << axes() << curves << "</svg>\n";
}

double percent(int part, int whole) { return whole == 0 ? 0 : 100.0 * part / whole; }

}  // namespace

int main(int argc, char** argv) {
  using enum CpuOption;
  const Strategy strategies[] = {
      {"packed", {}, "#1f77b4", packed_policy()},
      {"packed, whole L3 caches", {kPreferAlignByUncoreCache}, "#17becf", packed_policy()},
      {"packed, full-pcpus-only", {kFullPcpusOnly}, "#2ca02c", packed_policy()},
      {"packed, across cores", {kDistributeAcrossCores}, "#d62728", packed_policy()},
      {"distributed", {kDistributeAcrossNuma}, "#ff7f0e", distributed_policy()},
      {"distributed, full-pcpus-only",
       {kDistributeAcrossNuma, kFullPcpusOnly},
       "#9467bd",
       distributed_policy()},
      {"fitted", {}, "#111111", fitted_policy()},
  };
  const Machine machine = ka::bench::large_machine();
  const std::vector<Pod> pods = day_of_pods();
  std::string curves;
  int row = 0;
  fmt::print("| strategy | free CPUs on broken cores | cross-node | refused | CPU time each |\n");
  fmt::print("|---|---|---|---|---|\n");
  for (const Strategy& strategy : strategies) {
    const Day day = live(machine, strategy, pods);
    fmt::print("| {} | {:.1f} % | {:.1f} % | {:.1f} % | {:.0f} us |\n", strategy.name,
               100 * day.broken, percent(day.cross_node, day.fits_node),
               percent(day.refused, kRequests), day.microseconds);
    curves += curve(strategy, day, row++);
  }
  if (argc > 1) draw(argv[1], curves);
}
