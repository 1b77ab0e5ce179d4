// SPDX-License-Identifier: Apache-2.0
#include "affinity/board/rdt_view.hpp"

namespace ka::board {
namespace {

constexpr const char* kPending = "the helper (kata-affinity-helper) has not responded yet";

}  // namespace

std::string RdtView::problem_of(int tid, const std::string& name) const {
  if (!problem.empty()) return problem;
  const auto found = classes.find(name);
  if (found == classes.end()) return kPending;
  if (!found->second.problem.empty()) return found->second.problem;
  const auto thread = found->second.threads.find(tid);
  return thread == found->second.threads.end() ? kPending : thread->second;
}

}  // namespace ka::board
