// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/client/grade.hpp"

#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"

namespace ka::cli {

std::string grade_text(const boost::json::value& pod) {
  const std::string problem = text_of(pod, "grade_problem");
  const std::string grade = text_of(pod, "grade");
  const bool is_quiet = grade == "quiet" || grade == "realtime";
  if (problem.empty()) return is_quiet ? grade : "";
  return (is_quiet ? grade + ": " : "NOT quiet: ") + problem;
}

}  // namespace ka::cli
