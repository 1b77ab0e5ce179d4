// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/client/grade.hpp"

#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"

namespace ka::cli {

std::string grade_text(const boost::json::value& pod) {
  const std::string problem = text_of(pod, "grade_problem");
  const bool is_quiet = text_of(pod, "grade") == "quiet";
  if (problem.empty()) return is_quiet ? "quiet" : "";
  return (is_quiet ? "quiet: " : "NOT quiet: ") + problem;
}

}  // namespace ka::cli
