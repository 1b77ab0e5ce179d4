// SPDX-License-Identifier: Apache-2.0
// Writes of which it could not be seen which thread they reached: kept until it can.
#pragma once

#include <map>
#include <string>

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

/// Checks the node's unsettled writes again. What reached another process's thread is undone and
/// reported; what still cannot be seen is kept.
void check_unsettled(Node& node, base::ThreadStats& stats);

/// Reports that a write to this thread reached another process's, and was undone.
void report_undone(Node& node, const std::string& sandbox, int tid);

}  // namespace ka::line
