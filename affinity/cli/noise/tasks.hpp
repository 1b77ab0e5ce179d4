// SPDX-License-Identifier: Apache-2.0
// What is known of the tasks that ran, read when each is seen first: many end soon.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "affinity/cli/noise/trace_event.hpp"
#include "base/process.hpp"

namespace ka::cli::noise {

struct TaskFacts {
  std::string name;
  bool is_kernel = false;  ///< a thread of the kernel
  bool is_bound = false;   ///< the kernel lets nobody move it (PF_NO_SETAFFINITY)
  std::string cgroup;      ///< of version 2, else of the cpuset controller; empty: not known
};

class Tasks {
 public:
  explicit Tasks(base::ProcFs proc) : proc_(std::move(proc)) {}

  /// Reads those of an event that are not known yet.
  void read(const TraceEvent& event);
  /// Null: it had ended before it could be read.
  const TaskFacts* find(int tid) const;

 private:
  void read(int tid);

  base::ProcFs proc_;
  std::map<int, std::optional<TaskFacts>> known_;
};

}  // namespace ka::cli::noise
