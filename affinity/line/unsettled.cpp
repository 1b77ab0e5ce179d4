// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/unsettled.hpp"

#include "affinity/line/apply.hpp"
#include "affinity/line/node.hpp"

namespace ka::line {

namespace {

void check_masks(Node& node, base::ThreadStats& stats) {
  std::erase_if(node.unsettled, [&](const auto& entry) {
    const auto& [sandbox, write] = entry.second;
    const WriteResult result = check_again(write, node.calls, stats);
    if (result.reverted) report_undone(node, sandbox, result.key.tid, "mask");
    return !result.unsettled;
  });
}

void check_nices(Node& node, base::ThreadStats& stats) {
  std::erase_if(node.unsettled_nices, [&](const auto& entry) {
    const auto& [key, unsettled] = entry;
    const NiceResult result = check_nice_again({key, unsettled.value}, node.calls, stats);
    if (result.reverted) report_undone(node, unsettled.sandbox, key.tid, "nice value");
    return !result.unsettled;
  });
}

}  // namespace

void check_unsettled(Node& node, base::ThreadStats& stats) {
  check_masks(node, stats);
  check_nices(node, stats);
}

void report_undone(Node& node, const std::string& sandbox, int tid, std::string_view what) {
  node.board.notify(board::NotificationKind::kTakenBack, sandbox,
                    "thread " + std::to_string(tid) +
                        " was reused during the write: the new thread has the " +
                        std::string(what) + " that it was started with again");
}

}  // namespace ka::line
