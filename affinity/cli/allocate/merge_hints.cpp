// SPDX-License-Identifier: Apache-2.0
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/allocate/allocate.hpp"
#include "affinity/cli/allocate/batch.hpp"
#include "affinity/documents/hints.hpp"
#include "base/json/json.hpp"

namespace ka::cli {
namespace {

std::string describe(const policy::allocate::MergedHint& hint) {
  const std::string nodes = hint.affinity ? policy::format_list(*hint.affinity) : "any";
  return "NUMA nodes " + nodes + (hint.preferred ? ", preferred" : ", not preferred") +
         (hint.admit ? ", admitted\n" : ", refused\n");
}

base::Result<boost::json::object> answer(const boost::json::value& document) {
  const auto problem = documents::hint_problem_from_json(document);
  if (!problem) return unexpected(problem.error());
  const auto merged = policy::allocate::merge_hints(*problem);
  if (!merged) return base::fail(base::ErrorCode::kInvalid, merged.error());
  return documents::to_json(*merged);
}

}  // namespace

Exit run(const MergeHintsOptions& options, Output& output) {
  if (options.batch) return run_batch(options.input, output, answer);
  const auto document = read_json_input(options.input);
  if (!document) return output.fail(document.error());
  const auto problem = documents::hint_problem_from_json(*document);
  if (!problem) return output.fail(about_input(options.input, problem.error()));
  const auto merged = policy::allocate::merge_hints(*problem);
  if (!merged) return output.fail({base::ErrorCode::kInvalid, merged.error(), 0});
  output.show(documents::to_json(*merged), [&merged] { return describe(*merged); });
  return Exit::kDone;
}

}  // namespace ka::cli
