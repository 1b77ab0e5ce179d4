// SPDX-License-Identifier: Apache-2.0
// The one line: event -> ledger -> snapshot -> plan -> diff -> apply -> re-read. Every trigger (an
// event, a timer, a restart, a person) runs it; there is no second path to the kernel.
//
// The engine is synchronous and single-threaded: a call returns when the kernel has been written
// and read again. What blocks or waits (monitors, sockets, timers) lives outside and calls in.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/board/board.hpp"
#include "affinity/engine/others.hpp"
#include "affinity/engine/report.hpp"
#include "affinity/engine/vcpu_waits.hpp"
#include "affinity/engine/views.hpp"
#include "affinity/host/cgroup.hpp"
#include "affinity/host/cpuset_writer.hpp"
#include "base/clock.hpp"
#include "base/log/log.hpp"
#include "base/process.hpp"
#include "base/result.hpp"
#include "policy/ledger/event.hpp"
#include "policy/ledger/ledger.hpp"
#include "policy/ledger/start_gate.hpp"
#include "policy/plan/diff.hpp"
#include "policy/plan/invariants.hpp"
#include "policy/plan/plan.hpp"
#include "policy/plan/settings.hpp"
#include "vmm/threads.hpp"

namespace ka::state {
struct Saved;
class Store;
}  // namespace ka::state

namespace ka::engine {

class AffinityCalls;
class Sandbox;
enum class CgroupMode;
struct Applied;
struct Eyes;

using board::NotificationKind;
using board::Outcome;

/// How the engine treats a node.
struct Options {
  bool enable = true;    ///< false: every thread is given back
  bool observe = false;  ///< plan and report, write nothing
  policy::plan::Settings settings;
  /// Per runtime handler, in place of `settings`.
  std::map<std::string, policy::plan::Settings, std::less<>> by_handler;
};

/// What the engine writes affinities and cpusets with.
struct Hands {
  AffinityCalls& calls;
  host::CpusetWriter& cpusets;
};

class Engine {
 public:
  /// After a start the node's sources are waited for this long; what is silent then is done
  /// without. A container runtime that restarts needs a few seconds.
  static constexpr std::chrono::seconds kStartPatience{10};

  /// What `hands` refer to, `store`, `board`, `log` and `clock` must outlive the engine.
  Engine(policy::Topology topology, Options options, vmm::Roots roots, Hands hands,
         state::Store& store, board::Board& board, const log::Log& log, const base::Clock& clock);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  /// A source that this node has: nothing is widened until it has spoken (policy/ledger/
  /// start_gate.hpp). Before adopt().
  void expect(policy::ledger::Source source) { gate_.expect(source); }

  /// Takes back what the state files tell, then runs the line for the whole node.
  Outcome adopt();

  /// A source has told all that it has (kubelet does so with each event). What may be widened by
  /// that waits for finish().
  void source_spoke(policy::ledger::Source source);

  /// The sources that have not spoken are not waited for any longer; runs the line where that
  /// allows more.
  Outcome stop_waiting();

  /// What may be written since the start, and what that waits for.
  const policy::ledger::StartGate& gate() const { return gate_; }

  /// Sandboxes whose state could not be written, and why: tried again at each drift check.
  const std::map<std::string, std::string>& unsaved() const { return unsaved_; }

  /// Checks an event that a person or a program sent (the API) against the machine and against what
  /// is known, then handles it. An error changes nothing.
  /// A pin is told who asked for it, and gets its time from the clock.
  base::Result<Outcome> submit(policy::ledger::Event event);

  /// Takes back the pins whose time has come: they are placed by the plan again.
  Outcome end_pins();

  /// Handles what a source tells that already is so: it cannot be refused. However many events
  /// there are, the line runs once.
  Outcome handle(const std::vector<policy::ledger::Event>& events);
  Outcome handle(const policy::ledger::Event& event) { return handle(std::vector{event}); }

  /// The first half of handle(), for a source that waits: folds the events, and takes threads off
  /// CPUs that they must leave, as far as `budget` allows. The state files, and what lets threads
  /// onto more CPUs, wait for finish(). A sandbox is looked at only when its plan, made from what
  /// was last seen of it, takes something away.
  Outcome narrow(const std::vector<policy::ledger::Event>& events, std::chrono::nanoseconds budget);

  /// The second half: the line for what narrow() left, and for `sandbox` (may be empty), since
  /// what it was told of has been done by now (Kata plugs vCPUs and writes cgroups meanwhile).
  /// The drift check does it too, for events that nobody finishes.
  Outcome finish(std::string_view sandbox);

  /// What a monitor (QMP) told of a sandbox's vCPUs and iothreads; runs the line for it.
  Outcome take_monitor_facts(std::string_view sandbox, vmm::MonitorFacts facts);

  /// Runs the line again: for one sandbox, or for all.
  /// By a person: released sandboxes are placed again, and so are threads that were given up. For
  /// all, state of before the start that cannot be read is not waited for any longer.
  base::Result<Outcome> reconcile(std::string_view sandbox);
  Outcome reconcile_all();

  /// The VMM of a sandbox has ended, by the word of its pidfd: final, whatever has its number now.
  /// Nothing where the sandbox has another VMM by now.
  Outcome vmm_ended(std::string_view sandbox, const policy::ProcessId& vmm);

  /// Runs the line for one sandbox because something may have followed an event (Kata plugs vCPUs
  /// after it updates a container) or its VMM may be gone. Nothing for one that is not known; what
  /// narrow() left to finish() stays left.
  Outcome look_again(std::string_view sandbox);

  /// The drift check: reads what can have changed behind our back, and runs the line for sandboxes
  /// where something did. Cheap when nothing did.
  Outcome check_drift();

  /// Someone wrote the cgroup in `directory`: runs the line for the sandboxes in it.
  Outcome cgroup_written(const std::string& directory);

  /// Reads the kernel afresh and holds it against the invariants. What could not be read is a
  /// finding of its own. Writes nothing.
  VerifyReport verify();

  /// Gives the threads of one sandbox (or all) the mask they would have without us, until the next
  /// reconcile() of that sandbox.
  base::Result<Outcome> release(std::string_view sandbox);
  Outcome release_all();

  /// New settings (a reload): plans everything again.
  Outcome configure(Options options);
  const Options& options() const { return options_; }

  /// The machine changed (CPU hot-plug): plans everything again.
  Outcome change_topology(policy::Topology topology);

  const policy::Topology& topology() const { return topology_; }
  const policy::ledger::Ledger& ledger() const { return ledger_; }

  /// Reads how long each vCPU has waited for a CPU until now: for those who scrape metrics.
  const VcpuWaits& read_vcpu_waits();

  /// Ids of VM sandboxes, ascending.
  std::vector<std::string> sandbox_ids() const;
  std::optional<SandboxView> view(std::string_view sandbox) const;

 private:
  using Sandboxes = std::map<std::string, std::unique_ptr<Sandbox>, std::less<>>;
  using Affected = std::vector<Sandbox*>;
  using Ids = std::set<std::string, std::less<>>;
  /// What a number of events changed.
  struct Changes {
    Ids pods;  ///< those concerned; "" stands for the node as a whole
    bool exclusive_map = false;
    policy::CpuSet taken;
  };
  /// All that the plan wants, or only what takes CPUs away.
  enum class Extent { kAll, kNarrow };

  // The line (run.cpp).
  Outcome run(Affected sandboxes, Extent extent = Extent::kAll);
  Affected observe(Affected sandboxes, base::ThreadStats& stats, Outcome& outcome);
  bool observe_one(Sandbox& sandbox, base::ThreadStats& stats, Outcome& outcome);
  void plan(Sandbox& sandbox);
  policy::plan::SandboxPlan planned(const Sandbox& sandbox) const;
  Affected apply_all(const Affected& sandboxes, base::ThreadStats& stats, Outcome& outcome);
  Affected apply_to(const Affected& sandboxes, Extent extent, base::ThreadStats& stats,
                    Outcome& outcome);
  void note(Sandbox& sandbox, const Applied& applied, Outcome& outcome);
  std::vector<policy::plan::ThreadPlacement> placements_to_write(const Sandbox& sandbox,
                                                                 Extent extent) const;
  void see_trespass(const Sandbox& sandbox);
  policy::plan::NodeView node_view(const std::string& sandbox) const;
  void count_floating(const Sandbox& sandbox, int each);
  bool levels() const;
  bool should_level(const Sandbox& sandbox) const;
  Outcome level();
  const policy::plan::Settings& settings_for(const policy::ledger::PodRecord& pod) const;
  std::vector<policy::plan::Violation> violations_of(const Sandbox& sandbox,
                                                     const policy::ledger::PodRecord& pod) const;

  // The kernel held against the plans (verify.cpp).
  void note_unread(const Sandbox& sandbox, const base::Error& error, VerifyReport& report);
  void count_threads(const Sandbox& sandbox, VerifyReport& report);
  void check_others(VerifyReport& report);
  void check_held(const Sandbox& sandbox, const policy::ledger::PodRecord& pod,
                  VerifyReport& report);

  // Which containers have their CPUs to themselves (isolation.cpp).
  std::vector<policy::plan::ContainerIsolation> isolation_of(const Sandbox& sandbox) const;
  void follow_isolation(Sandbox& sandbox);

  // The cgroups around it (manage.cpp).
  CgroupMode cgroup_mode(const Sandbox& sandbox) const;
  bool is_given_back(const Sandbox& sandbox) const;
  bool may_be_left_alone(const Sandbox& sandbox) const;
  void widen_cgroup(Sandbox& sandbox, base::ThreadStats& stats, Outcome& outcome);
  bool narrow_cgroup(Sandbox& sandbox, Outcome& outcome);
  void cgroup_overwritten(const Sandbox& sandbox);
  void wrote_cgroup(const Sandbox& sandbox, Outcome& outcome);

  // The interrupts that go where vCPUs are (interrupts.cpp).
  void place_interrupts(Sandbox& sandbox, Extent extent, Outcome& outcome);
  bool interrupts_must_leave(const Sandbox& sandbox) const;
  void find_interrupt_drift(const Sandbox& sandbox);

  // What cannot be seen (run.cpp).
  bool has_ended(const Sandbox& sandbox, const base::Error& error) const;
  void report_trouble(const Sandbox& sandbox, bool was_seen);

  // Its two halves (narrow.cpp).
  Outcome narrow_by(const Changes& changes, std::chrono::nanoseconds budget);
  Affected pressed_by(const Changes& changes) const;
  void narrow_one(Sandbox& sandbox, Outcome& outcome);
  bool would_narrow(Sandbox& sandbox);

  // How events enter it (events.cpp).
  base::Result<policy::ledger::Event> identified(policy::ledger::Event event) const;
  base::Result<void> check_by_hand(const policy::ledger::OverrideSet& event) const;
  base::Result<void> check_removal(const std::string& id) const;
  base::Result<void> check_taken(const policy::Override& given, const Sandbox& sandbox,
                                 const policy::ledger::PodRecord& pod) const;
  void stamp(policy::ledger::OverrideSet& event) const;
  Changes take(const std::vector<policy::ledger::Event>& events);
  policy::ledger::Change take(const policy::ledger::Event& event);
  Outcome follow(const Changes& changes);
  Affected affected_by(const Changes& changes) const;
  Affected changed_by_map(const Ids& apart_from) const;

  // The start, and the state that outlives it (start.cpp).
  void load_state();
  void take_back(const state::Saved& saved);
  void retry_state();
  void dismiss_lost_state();
  void follow_gate(const policy::ledger::Event& event);
  void step_gate(const std::function<void()>& step);
  void save(const std::string& pod);
  void drop_state(const std::string& pod);
  void enter_saved(const std::string& pod, const base::Result<void>& done);

  // What surrounds it (engine.cpp).
  Outcome run_all();
  Outcome repair(Affected sandboxes);
  Outcome run_one(Sandbox& sandbox, Extent extent = Extent::kAll);
  Outcome settle();
  Outcome end_dead_sandboxes();
  Sandbox* find(std::string_view sandbox) const;
  bool is_adoptable(const policy::ledger::PodRecord& pod);
  void follow_ledger(const std::string& pod);
  void let_go(Sandbox& sandbox);
  Eyes eyes(base::ThreadStats& stats) const;

  // What the board notifies of.
  void subscribe();

  policy::Topology topology_;
  Options options_;
  vmm::Roots roots_;
  base::ProcFs proc_;
  std::optional<host::Cgroups> cgroups_;  ///< absent where the kernel has no cpuset cgroups
  AffinityCalls& calls_;
  host::CpusetWriter& cpusets_;
  state::Store& store_;
  board::Board& board_;
  const log::Log& log_;
  const base::Clock& clock_;
  policy::ledger::Ledger ledger_;
  policy::ledger::StartGate gate_;
  bool just_opened_ = false;  ///< the gate: the line has to be run for the whole node
  std::map<std::string, std::string> unsaved_;  ///< by pod: why its state is not written
  Sandboxes sandboxes_;
  std::vector<int> floating_load_;  ///< of all plans (policy::plan::add_floating_load)
  Ids unfinished_;                  ///< pods for which finish() has work
  bool map_changed_ = false;    ///< and it has to look whose plans another map of owners changed
  std::set<std::string> dead_;  ///< sandboxes whose VMM was found gone during a run
  VcpuWaits waits_;
  Ownership ownership_;
  std::chrono::steady_clock::time_point started_;
  std::optional<board::Cause> cause_;  ///< while events are handled
  std::vector<board::Subscription> subscriptions_;
};

}  // namespace ka::engine
