// SPDX-License-Identifier: Apache-2.0
// Records tracepoints of some CPUs by perf events (perf_event_open(2)), one ring of memory a CPU.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "affinity/cli/noise/decoder.hpp"
#include "affinity/cli/noise/trace_event.hpp"
#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"

namespace ka::cli::noise {

/// A ring that the kernel fills and we empty.
class Ring {
 public:
  /// Of a perf event. An error: no memory.
  static base::Result<Ring> map(int event);

  /// Hands over each record, its header included, and frees its room.
  void drain(const std::function<void(std::string_view record)>& handle);

 private:
  struct Unmap {
    void operator()(void* memory) const;
  };

  explicit Ring(void* memory) : memory_(memory) {}
  std::string_view copy(std::uint64_t at, std::size_t size);

  std::unique_ptr<void, Unmap> memory_;
  std::string scratch_;  ///< of a record that lies around the end of the ring
};

/// What a record of a ring says: an event of `cpu`, or that events were lost. Absent: another kind
/// of record, or not one of `decoder`'s.
std::optional<TraceEvent> read_record(const Decoder& decoder, int cpu, std::string_view record);

class Recorder {
 public:
  /// Needs CAP_PERFMON. `decoder` and `clock` must outlive it; the kernel stamps events with
  /// CLOCK_MONOTONIC, as base::Clock does.
  static base::Result<Recorder> open(const Decoder& decoder, const base::Clock& clock,
                                     const std::set<int>& cpus);

  /// Starts all; returns when.
  Nanoseconds start();
  /// Hands over what comes within `time`, in order for each CPU.
  void record(std::chrono::nanoseconds time, const std::function<void(const TraceEvent&)>& handle);
  /// Stops all, and hands over the rest; returns when.
  Nanoseconds stop(const std::function<void(const TraceEvent&)>& handle);

 private:
  struct Source {
    int cpu = 0;
    std::vector<base::Fd> events;  ///< the first owns the ring
    Ring ring;
  };

  Recorder(const Decoder& decoder, const base::Clock& clock) : decoder_(&decoder), clock_(&clock) {}
  Nanoseconds now() const { return clock_->now().time_since_epoch(); }
  base::Result<Source> open_cpu(int cpu) const;
  void drain(const std::function<void(const TraceEvent&)>& handle);
  void control(unsigned long request) const;

  const Decoder* decoder_;
  const base::Clock* clock_;
  std::vector<Source> sources_;
};

}  // namespace ka::cli::noise
