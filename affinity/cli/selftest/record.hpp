// SPDX-License-Identifier: Apache-2.0
// The manifests that a self-test writes, recorded on disk before each is written: after kill -9 the
// next call finds and removes them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "affinity/cli/selftest/pods.hpp"
#include "base/result.hpp"

namespace ka::cli::selftest {

/// A manifest that kubelet was given.
struct Placed {
  std::filesystem::path manifest;
  std::string uid;  ///< of its pod

  bool operator==(const Placed&) const = default;
};

class Record {
 public:
  /// Reads `file`; one that is missing or malformed records nothing.
  explicit Record(std::filesystem::path file);

  const std::vector<Placed>& placed() const { return placed_; }

  /// Adds what an earlier self-test left in `directory`: manifests with our prefix and label.
  void add_leftovers(const std::filesystem::path& directory);

  /// Gives a pod to the kubelet that reads `directory`; recorded first.
  base::Result<void> place(const std::filesystem::path& directory, const Pod& pod);

  /// Deletes the manifests; they stay recorded.
  base::Result<void> remove_manifests() const;

  /// Forgets all of them, once their pods are gone.
  base::Result<void> clear();

 private:
  base::Result<void> save() const;

  std::filesystem::path file_;
  std::vector<Placed> placed_;
};

}  // namespace ka::cli::selftest
