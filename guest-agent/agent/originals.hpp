// SPDX-License-Identifier: Apache-2.0
// The masks that the guest's interrupts, workqueues and kernel threads had before the agent changed
// them, for it or the next one to give back.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "policy/facts/id_set.hpp"

namespace ka::agent {

class Originals {
 public:
  explicit Originals(std::filesystem::path file) : file_(std::move(file)) {}

  /// Takes over what an agent that was killed has recorded.
  void load();
  /// Records a mask that is no limit of ours: the last one that others gave. One of all `online` is
  /// none.
  void remember(const std::string& key, const policy::GuestCpuSet& cpus,
                const policy::GuestCpuSet& online);
  /// The same, unless one is recorded.
  void remember_first(const std::string& key, const policy::GuestCpuSet& cpus,
                      const policy::GuestCpuSet& online) {
    if (!masks_.contains(key)) remember(key, cpus, online);
  }
  /// Writes what is new. Before any of these masks is changed.
  void save();
  /// What is to be given back: the recorded mask, as far as it is online; else all of `online`.
  policy::GuestCpuSet find(const std::string& key, const policy::GuestCpuSet& online) const;
  /// All was given back.
  void clear();

 private:
  std::filesystem::path file_;
  std::map<std::string, policy::GuestCpuSet> masks_;
  bool is_new_ = false;
};

}  // namespace ka::agent
