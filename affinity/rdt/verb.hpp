// SPDX-License-Identifier: Apache-2.0
// The verb /v1/resctrl of kata-affinity-helper. It runs as root, and some of what it reports is the
// kernel's.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/rdt/wants.hpp"
#include "base/http/message.hpp"
#include "base/result.hpp"

namespace ka::rdt {

/// What came of one class.
struct GroupState {
  std::string problem;                 ///< why there is no such group; empty: there is
  std::map<int, std::string> threads;  ///< by tid: why it is not in it; empty: it is

  bool operator==(const GroupState&) const = default;
};

struct State {
  std::map<std::string, GroupState> groups;  ///< by name of the class
  std::string problem;  ///< why there can be none; empty: nothing is in the way

  bool operator==(const State&) const = default;
};

struct Verb {
  using Wanted = std::vector<Group>;
  using State = rdt::State;

  /// POST /v1/resctrl: these groups, and no others.
  static http::Request request(const Wanted& groups);
  /// kInvalid, with the path of what is wrong. Reasons become printable.
  static base::Result<State> read(std::string_view document);
};

}  // namespace ka::rdt
