// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/stolen.hpp"

#include <unistd.h>

#include <sstream>
#include <string>

#include "base/files.hpp"

namespace ka::cli::noise {
namespace {

constexpr int kStealField = 8;  ///< of "cpu4 user nice system idle iowait irq softirq steal ..."

}  // namespace

Stolen read_stolen(const std::filesystem::path& proc) {
  Stolen stolen;
  const auto text = base::read_file(proc / "stat");
  std::istringstream lines(text.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name;
    fields >> name;
    const auto cpu = base::parse_number(
        std::string_view(name).substr(name.starts_with("cpu") ? 3 : name.size()));
    if (!cpu) continue;
    long long ticks = 0;
    for (int i = 1; i <= kStealField; ++i) fields >> ticks;
    if (!fields) continue;
    stolen[static_cast<int>(*cpu)] =
        std::chrono::milliseconds(ticks * 1000 / ::sysconf(_SC_CLK_TCK));
  }
  return stolen;
}

Stolen since(const Stolen& before, const Stolen& now) {
  Stolen stolen;
  for (const auto& [cpu, time] : now) {
    const auto earlier = before.find(cpu);
    if (earlier != before.end() && time > earlier->second) stolen[cpu] = time - earlier->second;
  }
  return stolen;
}

}  // namespace ka::cli::noise
