// SPDX-License-Identifier: Apache-2.0
// Turns the kernel's records of tracepoints into events.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/cli/noise/trace_event.hpp"
#include "affinity/cli/noise/trace_format.hpp"
#include "base/result.hpp"

namespace ka::cli::noise {

/// What the tracepoint of a row says.
enum class Meaning { kSwitch, kBegin, kEnd };

struct Tracepoint {
  std::string_view name;  ///< "sched/sched_switch"
  Meaning meaning = Meaning::kSwitch;
  CauseKind kind = CauseKind::kTask;
  std::string_view id_field = {};  ///< empty: `id` is the cause's
  int id = 0;
  std::string_view title = {};  ///< of the cause, where no field names it
  bool is_required = false;     ///< false: some kernels or machines do not have it
};

/// All that are recorded.
std::span<const Tracepoint> tracepoints();

class Decoder {
 public:
  /// Reads the formats below `tracefs`. An error: a required one is missing.
  static base::Result<Decoder> read(const std::filesystem::path& tracefs);

  /// One is known: where `name` is that of a row.
  void add(const Tracepoint& tracepoint, TraceFormat format);

  /// The ids of those that this kernel has.
  std::vector<std::uint16_t> ids() const;

  /// Absent: not one of ours, or cut short.
  std::optional<TraceEvent> decode(int cpu, Nanoseconds at, int running, Record record) const;

 private:
  struct Known {
    const Tracepoint* tracepoint = nullptr;
    TraceFormat format;
  };

  std::map<std::uint16_t, Known> known_;
};

}  // namespace ka::cli::noise
