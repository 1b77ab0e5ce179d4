// SPDX-License-Identifier: Apache-2.0
// How tracefs describes a tracepoint (events/GROUP/NAME/format; kernel,
// Documentation/trace/events.rst).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ka::cli::noise {

/// The bytes of a record.
using Record = std::string_view;

/// Where the fields of a record lie. Kernels differ in them.
class TraceFormat {
 public:
  /// kInvalid: it is no description of a tracepoint.
  static base::Result<TraceFormat> parse(std::string_view text);

  /// Of the tracepoint, as in each record's `common_type`.
  std::uint16_t id() const { return id_; }
  /// An integer of 1, 2, 4 or 8 bytes; absent: the record has no such field.
  std::optional<std::int64_t> number(Record record, const std::string& name) const;
  /// A fixed array of characters, or a `__data_loc char[]`; empty: the record has no such field.
  std::string text(Record record, const std::string& name) const;

 private:
  struct Field {
    std::size_t offset = 0, size = 0;
    bool is_signed = false;
    bool is_elsewhere = false;  ///< the field says where in the record the text is
  };

  static std::optional<std::pair<std::string, Field>> parse_field(std::string_view line);

  std::uint16_t id_ = 0;
  std::map<std::string, Field> fields_;
};

/// The type of a record: the id of its tracepoint. Absent: it is too short.
std::optional<std::uint16_t> type_of(Record record);

/// Where tracefs is mounted below `sys`; kUnavailable, with how to mount it.
base::Result<std::filesystem::path> find_tracefs(const std::filesystem::path& sys);

/// Of "sched/sched_switch"; an error where the kernel has no such tracepoint.
base::Result<TraceFormat> read_format(const std::filesystem::path& tracefs,
                                      const std::string& tracepoint);

}  // namespace ka::cli::noise
