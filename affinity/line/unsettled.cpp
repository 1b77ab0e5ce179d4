// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/unsettled.hpp"

#include "affinity/line/apply.hpp"
#include "affinity/line/node.hpp"

namespace ka::line {

void check_unsettled(Node& node, base::ThreadStats& stats) {
  std::erase_if(node.unsettled, [&](const auto& entry) {
    const auto& [sandbox, write] = entry.second;
    const WriteResult result = check_again(write, node.calls, stats);
    if (result.reverted) report_undone(node, sandbox, result.key.tid);
    return !result.unsettled;
  });
}

void report_undone(Node& node, const std::string& sandbox, int tid) {
  node.board.notify(board::NotificationKind::kTakenBack, sandbox,
                    "thread " + std::to_string(tid) +
                        " was reused during the write: the new thread has the mask that it was "
                        "started with again");
}

}  // namespace ka::line
