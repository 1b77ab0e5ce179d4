// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/movers.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace ka::host {
namespace {

constexpr std::array kThreadMovers = {kNumad, kTuned, kNriResourcePolicy, kDraDriver, kKoordlet};
constexpr std::array kInterruptMovers = {kIrqbalance, kTuned};

std::string running(const base::ProcFs& proc, std::span<const std::string_view> names) {
  std::string list;
  for (const int pid : proc.processes().value_or(std::vector<int>{})) {
    const auto stat = proc.stat(pid);
    if (!stat || std::ranges::find(names, stat->comm) == names.end()) continue;
    list += (list.empty() ? "" : ", ") + stat->comm + " (pid " + std::to_string(pid) + ')';
  }
  return list;
}

}  // namespace

std::string running_movers(const base::ProcFs& proc) { return running(proc, kThreadMovers); }

std::string running_interrupt_movers(const base::ProcFs& proc) {
  return running(proc, kInterruptMovers);
}

}  // namespace ka::host
