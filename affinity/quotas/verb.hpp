// SPDX-License-Identifier: Apache-2.0
// The verb /v1/quotas of kata-affinity-helper.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/http/message.hpp"
#include "base/result.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::quotas {

/// Threads of containers that are to have no quota, by line::quota_name().
using Wants = std::map<std::string, std::vector<policy::ThreadKey>>;

struct State {
  std::map<int, std::string> problems;  ///< by tid: why its quotas stay; empty: they do not
  std::string problem;                  ///< why nothing can be written; empty: it can

  bool operator==(const State&) const = default;
};

struct Verb {
  using Wanted = Wants;
  using State = quotas::State;

  /// POST /v1/quotas: these, and no others.
  static http::Request request(const Wanted& wants);
  /// kInvalid, with the path of what is wrong. Reasons become printable.
  static base::Result<State> read(std::string_view document);
};

}  // namespace ka::quotas
