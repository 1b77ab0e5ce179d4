// SPDX-License-Identifier: Apache-2.0
// The limits of one sandbox's block I/O, disk by disk: actual, planned and original ones. A part of
// ClassKeeper, which says when.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "affinity/host/cpuset_writer.hpp"
#include "affinity/line/class_attempts.hpp"
#include "affinity/line/views.hpp"
#include "affinity/state/store.hpp"
#include "base/result.hpp"
#include "policy/facts/io_limits.hpp"

namespace ka::line {

class IoMaxKeeper {
 public:
  using Views = std::vector<IoMaxView>;

  /// Something of ours is there.
  bool holds() const { return !held_.empty(); }
  /// Reads the limits of a cgroup; empty: the sandbox has none of its own.
  void observe(const std::string& cgroup);
  /// The views of what is wanted, with what is known to stand in the way.
  Views set_plan(const policy::IoLimits& wanted, const ClassAttempts& attempts) const;

  /// Records what will be written, with what is there now. True when that is new.
  bool prepare(const Views& views, const ClassAttempts& attempts);
  /// Writes what is wanted and recorded; what is not wanted any more is given back.
  void place(host::CpusetWriter& writer, Views& views, ClassAttempts& attempts,
             ClassWrites& writes);
  /// Gives back all that we wrote; what others wrote since stays.
  void give_back(host::CpusetWriter& writer, ClassAttempts& attempts, ClassWrites& writes);

  /// Remembers the limits as the line leaves them.
  void remember();
  /// Of how many disks another program has changed limits that we wrote.
  int count_changed() const;

  std::vector<state::SavedIoMax> saved() const;
  void restore(const std::vector<state::SavedIoMax>& saved);

 private:
  struct Held {
    state::SavedIoMax saved;
    std::optional<std::string> written;  ///< since the daemon's start
  };

  std::string problem_of(const IoMaxView& view, const ClassAttempts& attempts) const;
  void place(host::CpusetWriter& writer, IoMaxView& view, ClassAttempts& attempts,
             ClassWrites& writes);
  bool give_back(host::CpusetWriter& writer, const Held& held, ClassAttempts& attempts,
                 ClassWrites& writes);

  std::string cgroup_;
  base::Result<policy::IoLimits> actual_ = policy::IoLimits{};  ///< as last seen
  std::map<std::string, Held> held_;                            ///< by disk
  std::map<std::string, std::string> left_;                     ///< the same
};

}  // namespace ka::line
