// SPDX-License-Identifier: Apache-2.0
// The verb /v1/power of kata-affinity-helper.
#pragma once

#include <string>
#include <string_view>

#include "base/http/message.hpp"
#include "base/result.hpp"
#include "policy/facts/power.hpp"

namespace ka::power {

struct State {
  policy::PowerProblems problems;
  std::string problem;  ///< why nothing can be written; empty: it can

  bool operator==(const State&) const = default;
};

struct Verb {
  using Wanted = policy::PowerRequests;
  using State = power::State;

  /// POST /v1/power: these, and no others.
  static http::Request request(const Wanted& requests);
  /// kInvalid, with the path of what is wrong. Reasons become printable.
  static base::Result<State> read(std::string_view document);
};

}  // namespace ka::power
