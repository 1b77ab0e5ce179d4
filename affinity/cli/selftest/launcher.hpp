// SPDX-License-Identifier: Apache-2.0
// How the self-test's pods get onto the node, and who says which CPUs they own.
#pragma once

#include <string>
#include <vector>

#include "affinity/cli/selftest/assignments.hpp"
#include "affinity/cli/selftest/finding.hpp"
#include "affinity/cli/selftest/pods.hpp"
#include "base/result.hpp"

namespace ka::cli::selftest {

class Launcher {
 public:
  Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  virtual ~Launcher() = default;

  /// Who assigns CPUs.
  virtual Finding::By witness() const = 0;
  virtual base::Result<Assignments> assignments() const = 0;
  virtual base::Result<void> start(const Pod& pod) = 0;
  /// Looks for pods of an interrupted self-test.
  virtual base::Result<void> find_leftovers() = 0;
  /// The uids of the pods that were started or found, until forget().
  virtual std::vector<std::string> uids() const = 0;
  /// Has them removed, also where they were before; does not wait until they are gone.
  virtual base::Result<void> remove() = 0;
  /// They are gone.
  virtual base::Result<void> forget() = 0;
};

}  // namespace ka::cli::selftest
