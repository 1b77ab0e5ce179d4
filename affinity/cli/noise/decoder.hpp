// SPDX-License-Identifier: Apache-2.0
// Turns the kernel's records of tracepoints into events.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "affinity/cli/noise/trace_event.hpp"
#include "affinity/cli/noise/trace_format.hpp"
#include "base/result.hpp"

namespace ka::cli::noise {

struct Tracepoint;  ///< a row of the table of those that are recorded

class Decoder {
 public:
  /// Reads the formats below `tracefs`. An error: a required one is missing.
  static base::Result<Decoder> read(const std::filesystem::path& tracefs);

  /// The ids of those that this kernel has.
  std::vector<std::uint16_t> ids() const;

  /// Absent: not one of ours, or cut short.
  std::optional<TraceEvent> decode(int cpu, Nanoseconds at, int running, Record record) const;

 private:
  struct Known {
    const Tracepoint* tracepoint = nullptr;
    TraceFormat format;
  };

  void add(const Tracepoint& tracepoint, TraceFormat format);

  std::map<std::uint16_t, Known> known_;
};

}  // namespace ka::cli::noise
