// SPDX-License-Identifier: Apache-2.0
// The cgroups of kata-agent and of what systemd runs in a guest, kept off the vCPUs that belong to
// containers, and what they had before.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "guest-agent/agent/hierarchy.hpp"
#include "guest-agent/agent/placed_record.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::agent {

class Services {
 public:
  /// `file`: what they had, for an agent that comes after one that was killed.
  explicit Services(std::filesystem::path file) : record_(std::move(file)) {}

  /// Takes over what an agent that was killed has changed.
  void adopt();
  /// From now on they have `common`; systemd's slices at once, the others when they are given it.
  /// False: a cgroup could not be written.
  bool confine(const Hierarchy& hierarchy, const Tree& tree, const policy::GuestCpuSet& common,
               const policy::GuestCpuSet& online);
  /// Gives a cgroup what is in common, before it is recorded what it had.
  bool give(const std::filesystem::path& cgroup);
  /// Gives the cgroups again what they were given, where they are still there: systemd takes the
  /// cpuset controller off a slice when it likes, and makes the cgroup of a service that it
  /// restarts anew. Nothing is written that is so still. False: it could not.
  bool hold(const Tree& tree);
  /// Gives those that are still there what they had, or all that is `online`. What others have
  /// written since stays. False: it could not.
  bool give_back(const Hierarchy& hierarchy, const policy::GuestCpuSet& online);
  /// All was given back.
  void clear_record() { record_.save({}); }
  /// What a cgroup was last given; absent where it is none of these.
  std::optional<policy::GuestCpuSet> given(const std::filesystem::path& cgroup) const;

 private:
  struct Service {
    policy::GuestCpuSet given;
    policy::GuestCpuSet before;  ///< empty: no CPUs of its own, or all
    bool is_back = false;
  };

  bool place_slices(const Tree& tree);
  bool give(const std::filesystem::path& cgroup, const policy::GuestCpuSet& cpus);
  bool give_back(const std::filesystem::path& cgroup, Service& service);
  void save();

  PlacedRecord record_;
  Hierarchy hierarchy_;
  policy::GuestCpuSet common_, online_;
  std::map<std::filesystem::path, Service> services_;
};

}  // namespace ka::agent
