// SPDX-License-Identifier: Apache-2.0
// What interrupts dedicated vCPUs: the CPU's counters less those of the vCPU that has it. Counted
// from one reading to the next, whoever asks for it; between readings it costs nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "affinity/host/run_counters.hpp"
#include "affinity/line/node.hpp"
#include "base/clock.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::line {

/// Of one CPU. Each is at least what happened, but `nanoseconds`, which may be a tick of the
/// kernel's more for each slice.
struct Interruptions {
  std::uint64_t slices = 0;          ///< how often something else was given the CPU
  std::uint64_t nanoseconds = 0;     ///< that it ran
  std::uint64_t interrupts = 0;      ///< of the host's devices
  std::uint64_t passed_through = 0;  ///< interrupts of devices that VMs have: no interruptions
};

class CpuInterruptions {
 public:
  /// Of the vCPU that has the CPU now.
  struct Tenancy {
    std::string sandbox;
    int vcpu = 0;
    policy::ThreadKey thread;
    base::Clock::Time since;  ///< the first reading
    Interruptions count;
  };
  using Tenancies = std::map<int, Tenancy>;
  /// Since the daemon's start, of all vCPUs that had the CPU: they never fall.
  using Totals = std::map<int, Interruptions>;

  /// `node` must outlive it.
  explicit CpuInterruptions(const Node& node) : node_(node) {}

  /// Reads the counters of every CPU with a dedicated vCPU; nothing where there is none.
  void read();

  /// As of the last reading, by CPU.
  const Tenancies& tenancies() const { return tenancies_; }
  const Totals& totals() const { return totals_; }
  /// Why there is none; empty: they were read.
  const std::string& problem() const { return problem_; }

 private:
  /// The counters from which the next reading goes on.
  struct Base {
    std::int64_t first = 0;    ///< slices of others when the vCPU came
    std::uint64_t slices = 0;  ///< Interruptions::slices when the others were read
    host::CpuCounters cpu;
    std::uint64_t ran = 0;  ///< of the vCPU
    base::Clock::Time at;
  };
  using Own = std::map<int, host::ThreadCounters>;

  Tenancies now_dedicated() const;
  Own read_own(const Tenancies& tenancies) const;
  void begin(int cpu, const Tenancy& tenancy, const host::CpuCounters& counters,
             const host::ThreadCounters& own);
  std::optional<std::uint64_t> time_of_others(const Base& base, const host::CpuCounters& counters,
                                              const host::ThreadCounters& own) const;
  void go_on(int cpu, const host::CpuCounters& counters, const host::ThreadCounters& own);

  const Node& node_;
  Tenancies tenancies_;
  std::map<int, Base> bases_;
  Totals totals_;
  std::string problem_;
};

}  // namespace ka::line
