// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/services.hpp"

#include <algorithm>
#include <vector>

#include "guest-agent/agent/cpuset.hpp"

namespace ka::agent {
namespace {

using policy::GuestCpuSet;

/// What systemd runs beside containers (systemd.special(7)).
constexpr const char* kSlices[] = {"init.scope", "system.slice", "user.slice"};

/// A slice cannot have fewer CPUs than a container in it.
bool holds_container(const Tree& tree, const std::filesystem::path& slice) {
  const auto is_below = [&slice](const std::filesystem::path& cgroup) {
    return std::ranges::mismatch(slice, cgroup).in1 == slice.end();
  };
  return std::ranges::any_of(tree.strangers, is_below) ||
         std::ranges::any_of(tree.containers,
                             [&](const auto& one) { return is_below(one.second); });
}

bool is_there(const Tree& tree, const std::filesystem::path& cgroup) {
  return std::ranges::find(tree.branches, cgroup) != tree.branches.end();
}

}  // namespace

void Services::adopt() {
  for (const PlacedCgroup& placed : record_.load())
    services_[placed.directory].before = placed.cpus;
}

bool Services::confine(const Hierarchy& hierarchy, const Tree& tree, const GuestCpuSet& common,
                       const GuestCpuSet& online) {
  hierarchy_ = hierarchy;
  common_ = common;
  online_ = online;
  for (auto& [cgroup, service] : services_) {
    service.given = common;
    service.is_back = false;
  }
  return place_slices(tree);
}

/// A container that came into a slice later keeps its CPUs, and the services beside it get all.
bool Services::place_slices(const Tree& tree) {
  bool is_placed = true;
  for (const char* name : kSlices) {
    const auto slice = hierarchy_.root / name;
    if (!is_there(tree, slice)) continue;
    const bool has_containers = holds_container(tree, slice);
    if (has_containers && !services_.contains(slice)) continue;
    is_placed &= give(slice, has_containers ? online_ : common_);
  }
  return is_placed;
}

bool Services::give(const std::filesystem::path& cgroup) { return give(cgroup, common_); }

bool Services::give(const std::filesystem::path& cgroup, const GuestCpuSet& cpus) {
  const auto [at, is_first] = services_.try_emplace(cgroup);
  Service& service = at->second;
  if (is_first) {
    const GuestCpuSet now = given_cpus(cgroup).value_or(GuestCpuSet{});
    if (!online_.subset_of(now)) service.before = now;
    save();
  }
  service.given = cpus;
  return set_cpuset(hierarchy_, cgroup, cpus) == 0;
}

void Services::save() {
  std::vector<PlacedCgroup> all;
  for (const auto& [cgroup, service] : services_) all.push_back({cgroup, service.before, ""});
  record_.save(all);
}

bool Services::hold(const Tree& tree) {
  bool is_held = place_slices(tree);
  for (const auto& [cgroup, service] : services_) {
    if (is_there(tree, cgroup)) is_held &= set_cpuset(hierarchy_, cgroup, service.given) == 0;
  }
  return is_held;
}

bool Services::give_back(const Hierarchy& hierarchy, const GuestCpuSet& online) {
  hierarchy_ = hierarchy;
  online_ = online;
  bool is_back = true;
  for (auto& [cgroup, service] : services_) {
    if (given_cpus(cgroup)) is_back &= give_back(cgroup, service);
  }
  return is_back;
}

bool Services::give_back(const std::filesystem::path& cgroup, Service& service) {
  const auto is_others = [&] { return given_cpus(cgroup) != service.given; };
  if (std::exchange(service.is_back, true) && is_others()) return true;
  const GuestCpuSet left = service.before & online_;
  const int error = left.empty() ? clear_cpuset(hierarchy_, cgroup, online_)
                                 : set_cpuset(hierarchy_, cgroup, left);
  service.given = given_cpus(cgroup).value_or(GuestCpuSet{});
  return error == 0;
}

std::optional<GuestCpuSet> Services::given(const std::filesystem::path& cgroup) const {
  const auto found = services_.find(cgroup);
  return found == services_.end() ? std::nullopt : std::optional(found->second.given);
}

}  // namespace ka::agent
