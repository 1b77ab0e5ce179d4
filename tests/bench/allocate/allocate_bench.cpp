// SPDX-License-Identifier: Apache-2.0
// How long decisions take on random inputs, and how that grows with the machine.
//
//   bench_allocate         a table; fails where the time grows faster than the machine, or a merge
//                          takes too long
//   bench_allocate --once  a few decisions of each kind, each once, and the kinds' names: what
//                          `instructions` counts
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <string_view>

#include "tests/bench/allocate/scenes.hpp"

using namespace ka::bench;

namespace {

constexpr int kInputs = 40;
constexpr int kRepeats = 9;
/// 1024 CPUs in 64 nodes have 8 times the nodes of 256 in 8; the rest is what other work on the
/// machine makes of it.
constexpr double kMostGrowth = 8 * 1.5;
constexpr double kMostMergeMicroseconds = 10000;

/// Keeps the answer from being left out.
volatile int answered = 0;

/// callgrind counts what happens inside: `instructions` names it.
[[gnu::noinline]] void decide(const Decision& decision) { answered = answered + decision(); }

double cpu_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double time_of(const Decision& decision) {
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) {
    const double before = cpu_microseconds();
    decide(decision);
    times.push_back(cpu_microseconds() - before);
  }
  return median(std::move(times));
}

struct Times {
  double fastest = 0, median = 0, slowest = 0;
};

Times measure(std::string_view size, const Kind& kind) {
  std::vector<double> times;
  for (const Decision& decision : kind.decisions) times.push_back(time_of(decision));
  const auto [fastest, slowest] = std::ranges::minmax(times);
  const Times found{fastest, median(times), slowest};
  fmt::print("| {} | {} | {:.1f} us | {:.1f} us | {:.1f} us |\n", kind.name, size, found.fastest,
             found.median, found.slowest);
  return found;
}

bool grows_linearly(const Kind& kind, const Times& small, const Times& large) {
  const double growth = large.median / small.median;
  fmt::print("| {} | growth | | {:.1f} | |\n", kind.name, growth);
  return growth <= kMostGrowth;
}

int print_table() {
  fmt::print("| decision | machine | fastest | median | slowest |\n|---|---|---|---|---|\n");
  const ka::policy::allocate::Machine small = large_machine(), large = huge_machine();
  const std::vector<Kind> on_small = allocations(small, kInputs);
  const std::vector<Kind> on_large = allocations(large, kInputs);
  bool good = true;
  for (std::size_t i = 0; i < on_small.size(); ++i) {
    const Times time = measure("256 CPUs, 8 nodes", on_small[i]);
    good = grows_linearly(on_small[i], time, measure("1024 CPUs, 64 nodes", on_large[i])) && good;
  }
  measure("8 nodes", merges(8, kInputs));
  good = measure("64 nodes", merges(64, kInputs)).slowest < kMostMergeMicroseconds && good;
  return good ? 0 : 1;
}

/// callgrind writes down what it has counted.
[[gnu::noinline]] void kind_done(const std::string& size, const Kind& kind) {
  fmt::print("{}, {}\n", kind.name, size);
}

void decide_once(const std::string& size, const std::vector<Kind>& kinds) {
  for (const Kind& kind : kinds) {
    for (const Decision& decision : kind.decisions) decide(decision);
    kind_done(size, kind);
  }
}

int decide_all_once() {
  constexpr int kOfEach = 4;
  const ka::policy::allocate::Machine small = large_machine(), large = huge_machine();
  decide_once("256 CPUs", allocations(small, kOfEach));
  decide_once("1024 CPUs", allocations(large, kOfEach));
  decide_once("8 nodes", {merges(8, kOfEach)});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return argc > 1 && std::string_view(argv[1]) == "--once" ? decide_all_once() : print_table();
}
