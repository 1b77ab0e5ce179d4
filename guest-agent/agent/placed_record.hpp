// SPDX-License-Identifier: Apache-2.0
// Which cgroups the agent has placed, and the quotas that it has lifted: on disk before they are,
// for an agent that comes after one that was killed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/facts/id_set.hpp"

namespace ka::agent {

struct PlacedCgroup {
  std::filesystem::path directory;
  policy::GuestCpuSet cpus;  ///< what it was given; of a service: what it had
  std::string quota;         ///< what it had; empty: it was not lifted
};

class PlacedRecord {
 public:
  explicit PlacedRecord(std::filesystem::path file) : file_(std::move(file)) {}

  /// None where there is no record. A line that is none is as if it were not there.
  std::vector<PlacedCgroup> load() const;
  /// Writes nothing when it holds the same already; none: removes it. What cannot be recorded is
  /// placed nevertheless: it is lost only with the agent.
  void save(const std::vector<PlacedCgroup>& placed);

 private:
  std::filesystem::path file_;
  std::optional<std::string> written_;  ///< nothing: not known, as after a start
};

}  // namespace ka::agent
