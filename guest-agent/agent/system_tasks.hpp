// SPDX-License-Identifier: Apache-2.0
// What runs in a guest beside its containers, kept off the vCPUs that belong to containers:
// interrupts, the kernel's own threads, kata-agent, and what systemd runs in a guest that has it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "guest-agent/agent/hierarchy.hpp"
#include "guest-agent/agent/kernel.hpp"
#include "guest-agent/agent/originals.hpp"
#include "guest-agent/agent/services.hpp"
#include "policy/facts/guest.hpp"

namespace ka::agent {

class SystemTasks {
 public:
  /// Both must outlive it.
  SystemTasks(const Roots& roots, const Calls& calls)
      : roots_(roots),
        calls_(calls),
        originals_(roots.run / "kata-affinity/masks"),
        services_(roots.run / "kata-affinity/services") {}

  /// Keeps all of it on `common` from now on: places interrupts, and makes place_some() look at
  /// every task of the guest. Nothing is touched while no CPU was ever set apart; once one was, by
  /// an agent that was killed, too, all of it follows hotplug, also after it was restored.
  void begin(const Hierarchy& hierarchy, const Tree& tree, const policy::GuestCpuSet& common,
             const policy::GuestCpuSet& online, bool interrupts);
  /// begin() left work to do.
  bool is_placing() const { return !tasks_.empty(); }
  /// Places a few tasks, in a time for which a request to the agent can wait. All of them are done
  /// when is_placing() is false.
  void place_some();
  /// See Services::hold().
  bool hold_services(const Tree& tree) { return state_ != State::kApart || services_.hold(tree); }
  /// What a service's cgroup was last given; absent where it is none.
  std::optional<policy::GuestCpuSet> given(const std::filesystem::path& cgroup) const {
    return services_.given(cgroup);
  }
  /// Enters what could and what could not be moved since begin().
  void record(policy::GuestReport& report) const;

 private:
  /// kUntouched --a CPU is set apart--> kApart <--> kRestored: none is any more.
  enum class State { kUntouched, kApart, kRestored };

  bool adopt();
  void keep_record() const;
  std::filesystem::path record() const;
  void remember_alike(const policy::GuestCpuSet& cpus);
  std::string stat_of(int pid) const;
  void place_mask(const std::filesystem::path& file, const std::string& key, bool is_kept_off);
  void place_interrupts(bool is_kept_off);
  bool is_ours(const policy::GuestCpuSet& cpus) const;
  void place_task(int pid);
  void place_kernel_thread(int pid);
  bool place_service(int pid);

  const Roots& roots_;
  const Calls& calls_;
  Originals originals_;
  Services services_;
  State state_ = State::kUntouched;
  bool interrupts_placed_ = false;  ///< they ever were
  Hierarchy hierarchy_;
  policy::GuestCpuSet common_, online_;
  std::vector<policy::GuestCpuSet> earlier_;  ///< before that, since all was in its place last
  std::vector<int> tasks_;                    ///< not placed since begin()
  policy::GuestReport done_;                  ///< record() copies its part of it
};

}  // namespace ka::agent
