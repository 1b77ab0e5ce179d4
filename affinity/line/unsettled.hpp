// SPDX-License-Identifier: Apache-2.0
// Writes of masks and nice values of which it could not be seen which thread they reached: kept
// until it can.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "affinity/line/nice.hpp"
#include "base/thread_stats.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/plan/diff.hpp"

namespace ka::line {

class Node;

struct UnsettledWrite {
  std::string sandbox;
  policy::plan::Write write;
};

/// The last of each thread that was meant.
using UnsettledWrites = std::map<policy::ThreadKey, UnsettledWrite>;

struct UnsettledNice {
  std::string sandbox;
  int value = 0;  ///< as written
};

using UnsettledNices = std::map<policy::ThreadKey, UnsettledNice>;

/// Checks the node's unsettled writes again. What reached another thread is undone and reported;
/// what still cannot be seen is kept.
void check_unsettled(Node& node, base::ThreadStats& stats);

/// Reports that a write to this thread reached another one, and was undone. `what` was written.
void report_undone(Node& node, const std::string& sandbox, int tid, std::string_view what);

}  // namespace ka::line
