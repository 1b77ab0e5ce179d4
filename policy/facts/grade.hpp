// SPDX-License-Identifier: Apache-2.0
// The grade that a pod requests by annotation. As a number: a node has many pods.
#pragma once

#include <cstdint>
#include <string_view>

namespace ka::policy {

inline constexpr std::string_view kGradeAnnotation = "kata-affinity.io/grade";
/// In allow_annotations.
inline constexpr std::string_view kGradeKey = "grade";

enum class GradeRequest : std::uint8_t {
  kNone,
  kBestEffort,
  kQuiet,
  kRealtime,
  kUnknown,  ///< some other value
};

constexpr GradeRequest parse_grade_request(std::string_view value) {
  if (value == "quiet") return GradeRequest::kQuiet;
  if (value == "realtime") return GradeRequest::kRealtime;
  return value == "best-effort" ? GradeRequest::kBestEffort : GradeRequest::kUnknown;
}

/// A value that parses to it; of kNone there is none.
constexpr std::string_view grade_request_name(GradeRequest request) {
  if (request == GradeRequest::kQuiet) return "quiet";
  if (request == GradeRequest::kRealtime) return "realtime";
  return request == GradeRequest::kBestEffort ? "best-effort" : "unknown";
}

}  // namespace ka::policy
