// SPDX-License-Identifier: Apache-2.0
// The verb /v1/partitions of kata-affinity-helper. It runs as root, and some of what it reports is
// the kernel's.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "affinity/partitions/wants.hpp"
#include "base/http/message.hpp"
#include "base/result.hpp"

namespace ka::partitions {

/// What came of one partition.
struct PartitionState {
  std::string problem;       ///< why there is none; empty: there is
  std::string not_realtime;  ///< why its threads are no real-time threads; empty: as requested
  std::string low_power;     ///< why its CPUs are not at full power; empty: as requested
  int undone = 0;            ///< how often others undid it, and it was made again

  bool operator==(const PartitionState&) const = default;
};

struct State {
  std::map<policy::ThreadKey, PartitionState> partitions;  ///< by VMM
  std::string problem;  ///< why there can be none; empty: nothing is in the way

  bool operator==(const State&) const = default;
};

struct Verb {
  using Wanted = Wants;
  using State = partitions::State;

  /// POST /v1/partitions: these, and no others.
  static http::Request request(const Wants& wants);
  /// kInvalid, with the path of what is wrong. Reasons become printable.
  static base::Result<State> read(std::string_view document);
};

}  // namespace ka::partitions
