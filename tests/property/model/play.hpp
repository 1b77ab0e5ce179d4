// SPDX-License-Identifier: Apache-2.0
// A history of a node played against a line, and judged after each step: by the reference while
// things go wrong, by the node as it really is when all of it has been told.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/property/model/kernel.hpp"
#include "tests/property/model/knowledge.hpp"
#include "tests/property/model/steps.hpp"
#include "tests/property/model/world.hpp"

namespace ka::model {

/// The node that a seed stands for.
Setup any_setup(std::uint64_t seed);

class Play {
 public:
  explicit Play(const Setup& setup);

  /// What is wrong after it; empty: nothing.
  std::string perform(const Step& step);

  /// Masks that were written until now, each judged.
  std::uint64_t writes() const { return writes_; }
  /// Steps after which all invariants were checked.
  std::uint64_t rests() const { return rests_; }

 private:
  using Events = std::vector<policy::ledger::Event>;
  using Act = std::function<void()>;

  /// Where a VM's threads may be, as they were told or as it is.
  struct Place {
    std::string id;
    int pid = 0;
    policy::CpuSet own;  ///< CPUs that are its containers' alone
    policy::CpuSet may;  ///< its mask and housekeeping, without CPUs of others
    bool is_confined = false;
  };

  struct Kept {
    std::map<std::string, KnownContainer> containers;
    policy::CpuSet own;
    std::map<int, policy::CpuSet> masks;  ///< of vCPUs by tid
  };

  /// What the first thread of a VM had.
  struct Original {
    policy::CpuSet cpus;
    bool everywhere = false;  ///< all that its cgroup allowed
    bool operator==(const Original&) const = default;
  };

  struct Originals {
    std::vector<Original> seen;  ///< one of these the daemon saw first
    bool is_written = false;     ///< by the daemon since
  };

  struct ManagedCgroup {
    policy::CpuSet theirs;               ///< as others wrote it last, before the daemon did
    std::optional<policy::CpuSet> ours;  ///< that the daemon wrote last; absent: given back
  };

  struct Release {
    bool is_done = false;  ///< the daemon writes nothing to it any more
    bool is_exact = true;  ///< nobody else has written to it since
  };

  // What happens (play.cpp).
  void change(const Step& step);
  void change_pods(const Step& step);
  void change_machine(const Step& step);
  void run_pod(std::uint32_t choice);
  void run_container(std::uint32_t choice);
  void exit_container(std::uint32_t choice);
  void remove_pod(std::uint32_t choice);
  void reconcile(bool owners_only);
  void end_vmm(std::uint32_t choice);
  void end_process_of(Pod& pod, bool reused);
  void change_vcpus(std::uint32_t choice, bool plug);
  void write_masks(std::uint32_t choice);
  void pin(std::uint32_t choice);
  void unpin();
  void fail(std::uint32_t choice);
  void go_offline(std::uint32_t choice);
  Pod* any_vm(std::uint32_t choice);

  // What the daemon hears of it (hearing.cpp).
  void record(const Step& step);
  void report(const Events& events, const std::string& pod, const Act& meanwhile = {});
  /// False: the daemon was killed meanwhile, and another one has started.
  bool guarded(const std::set<std::string>& concerned, const Act& act);
  void note(const Events& events);
  void note_container(const policy::ledger::Event& event);
  Events whole_truth();
  void handle(const Events& events);
  void handle(const Events& events, const std::set<std::string>& concerned);
  void repeat();
  void handle_assigned(const Assigned& assigned);
  void read_assigned();
  void miss_assigned(bool is_gone);
  void lose_assigner();
  void deliver(std::uint32_t choice, bool keep);
  void synchronize();
  std::set<std::string> set_aside() const;
  void restart(const std::set<std::string>& damaged, bool assigner_first);
  void damage(std::uint32_t choice);
  void tick();
  void time_out();

  // What an operator asks for (releases.cpp).
  static bool is_of_node(std::uint32_t choice) { return choice % 5 == 0; }
  void release(std::uint32_t choice);
  void reclaim(std::uint32_t choice);
  void reclaim_all();
  std::set<std::string> placed();
  std::set<std::string> placed_or_one(std::uint32_t choice);
  void touch(const std::string& id);
  void note_original(int pid);
  void note_originals();
  void note_write(int tid);
  void lose_originals(const std::string& id);
  bool has_original(int tid, const Original& original);
  void check_released(const std::string& id, const KnownPod& pod);
  void check_released_are_named(const line::VerifyReport& report);

  // Cgroups that the daemon manages (cgroups.cpp).
  bool manages() const { return setup_.options.settings.manage_cgroup; }
  bool is_confined(const Pod& pod) const { return pod.confined && !manages(); }
  void watch_cgroups();
  void confine(const Pod& pod, bool is_noticed);
  void before_cgroup_write(const std::string& id);
  void check_cgroup_write(const std::string& id);
  void check_given_back(const std::string& id);
  void check_cgroup_is_theirs(const std::string& id);
  void check_cgroup(const std::string& id, const policy::CpuSet& foreign);

  // libvirt and its domains (domains.cpp).
  bool are_all_up() const {
    return runtime_is_up_ && assigner_is_up_ && (libvirt_is_up_ || !setup_.has_libvirt);
  }
  void lose_libvirt();
  void find_libvirt();
  void start_domain(const Pod& pod);
  void end_domain(const std::string& id);
  void describe_domains();
  void describe(const Pod& pod, const Container& container);

  // Whether that is right (checks.cpp).
  void count_down();
  void check_write(int tid);
  void check();
  void check_pod(const std::string& id, const KnownPod& pod);
  void quiesce();
  void check_keeps_released();
  void check_quiescent();
  void check_verify();
  /// Its threads are nobody else's to place.
  bool is_held_to_plan(const std::string& id) const {
    return !pins_.contains(id) && !released_.contains(id);
  }
  bool is_trapped(const std::string& id);
  void check_alone(const Pod& pod);
  bool is_at_rest();
  void check_at_rest();
  void check_place(const std::string& id, const KnownPod& pod);
  void check_within(const Place& place);
  void check_owned(const Place& place);
  void check_dedicated(const Place& place);
  void check_group(const Place& place, const policy::CpuSet& left);
  void check_kept();
  bool is_contested();
  std::map<int, policy::CpuSet> masks_of_placed();
  void check_restart();
  void report_failure(std::string text) { failures_.push_back(std::move(text)); }

  Setup setup_;
  World world_;
  Knowledge knowledge_;
  Kernel kernel_;
  std::deque<policy::ledger::Event> mail_;  ///< under way, where the runtime does not wait
  std::pair<Events, std::string> last_;     ///< that was reported, and of which pod
  Assigned assigned_, assigned_before_;     ///< as read last, and before
  bool runtime_is_up_ = false, assigner_is_up_ = false, libvirt_is_up_ = false;
  int writes_until_kill_ = 0;         ///< 0: it lives
  std::set<std::string> unfinished_;  ///< pods whose last word may not be in the state files
  /// Pods of which something changed that no event told of: the drift check finds it.
  std::set<std::string> dirty_;
  /// Pins by hand, by pod, that may be in force: its threads are held to I2 alone.
  std::map<std::string, std::vector<policy::Override>> pins_;
  std::map<std::string, Release> released_;
  std::map<int, Originals> originals_;  ///< by pid
  std::map<std::string, ManagedCgroup> cgroups_;
  policy::CpuSet cgroup_before_;                ///< the cgroup being written
  std::map<int, policy::CpuSet> masks_before_;  ///< and the masks of its threads
  bool is_calm_ = false;                        ///< since `kept_` nothing but pods came and went
  std::map<std::string, Kept> kept_;            ///< by pod, when nothing was left to do last
  policy::CpuSet before_;                       ///< the mask being written
  std::uint64_t rests_ = 0;
  std::uint64_t writes_ = 0;
  std::vector<std::string> failures_;
};

}  // namespace ka::model
