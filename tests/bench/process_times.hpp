// SPDX-License-Identifier: Apache-2.0
// What a process has used so far, by /proc; the end of the program where that cannot be read.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.hpp"

namespace ka::bench {

/// The first number of a file of /proc behind `label`.
inline double number_in(const std::string& path, const std::string& label) {
  const auto text = base::read_file(path);
  const std::size_t at = text ? text->find(label) : std::string::npos;
  if (at == std::string::npos) std::exit(1);
  return std::strtod(text->c_str() + at + label.size(), nullptr);
}

/// Nanoseconds on a CPU (Documentation/scheduler/sched-stats.rst), of all threads.
inline double cpu_time(int pid) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  double sum = 0;
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    sum += number_in(task.path() / "schedstat", "");
  }
  return sum;
}

}  // namespace ka::bench
