// SPDX-License-Identifier: Apache-2.0
// The agent's interface to the guest's kernel: where its trees are, and the two calls that are no
// files. Tests provide their own trees and record the calls.
#pragma once

#include <filesystem>
#include <optional>

#include "policy/facts/id_set.hpp"

namespace ka::agent {

struct Roots {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
  std::filesystem::path run = "/run";
};

class Calls {
 public:
  Calls() = default;
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  virtual ~Calls() = default;

  /// sched_getaffinity(2); absent when the thread is gone.
  virtual std::optional<policy::GuestCpuSet> affinity(int tid) const;
  /// sched_setaffinity(2). 0, or the errno.
  virtual int set_affinity(int tid, const policy::GuestCpuSet& cpus) const;
};

}  // namespace ka::agent
