// SPDX-License-Identifier: Apache-2.0
// Sandboxes that may run on CPUs that belong to other pods: how many CPUs, for how long, and
// which source reported it. Nothing that we write causes it (I2); it predates our
// knowledge.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "affinity/board/counters.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::board {

/// The source that the line runs for, and when it reported.
struct Cause {
  std::string source;  ///< "nri", "kubelet", ...; "drift": no source reported it, it was found
  std::chrono::steady_clock::time_point since;
};

class Trespasses {
 public:
  using Clock = std::chrono::steady_clock;
  /// From the report that a CPU is another's until the last thread has left it.
  using Durations = Histogram<8>;

  /// Records which CPUs of others the threads of a sandbox may use now: none ends what was open.
  void record(const std::string& sandbox, const policy::CpuSet& touched, const Cause& cause,
              Clock::time_point now);
  /// The sandbox has ended.
  void forget(std::string_view sandbox);

  /// Whether the sandbox's threads may use CPUs of others, by what was recorded last.
  bool is_open(std::string_view sandbox) const { return open_.find(sandbox) != open_.end(); }
  /// CPUs that are touched now, counted once for each sandbox that does.
  int open_cpus() const;
  /// All that ever were, by source.
  const std::map<std::string, std::uint64_t>& cpus() const { return cpus_; }
  /// Of those that ended, by source.
  const std::map<std::string, Durations>& durations() const { return durations_; }

 private:
  struct Open {
    Cause cause;
    policy::CpuSet cpus;
  };

  std::map<std::string, Open, std::less<>> open_;  ///< by sandbox
  std::map<std::string, std::uint64_t> cpus_;
  std::map<std::string, Durations> durations_;
};

}  // namespace ka::board
