// SPDX-License-Identifier: Apache-2.0
#include "affinity/board/rdt_view.hpp"

#include "affinity/messages/terms.hpp"

namespace ka::board {

std::string RdtView::problem_of(int tid, const std::string& name) const {
  if (!problem.empty()) return problem;
  const auto found = classes.find(name);
  if (found == classes.end()) return messages::kHelperPending;
  if (!found->second.problem.empty()) return found->second.problem;
  const auto thread = found->second.threads.find(tid);
  return thread == found->second.threads.end() ? messages::kHelperPending : thread->second;
}

}  // namespace ka::board
