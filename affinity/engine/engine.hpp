// The one line: event -> ledger -> snapshot -> plan -> diff -> apply -> re-read. Every trigger (an
// event, a timer, a restart, a person) runs it; there is no second path to the kernel.
//
// The engine is synchronous and single-threaded: a call returns when the kernel has been written
// and read again. What blocks or waits (monitors, sockets, timers) lives outside and calls in.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/base/log.hpp"
#include "affinity/base/result.hpp"
#include "affinity/engine/views.hpp"
#include "policy/ledger/event.hpp"
#include "policy/ledger/ledger.hpp"
#include "policy/plan/plan.hpp"
#include "policy/plan/settings.hpp"
#include "vmm/threads.hpp"

namespace ka::state {
class Store;
}

namespace ka::engine {

class AffinityCalls;
class Sandbox;

/// How the engine treats a node.
struct Options {
  bool enable = true;    ///< false: every thread is given back
  bool observe = false;  ///< plan and report, write nothing
  policy::Settings settings;
  /// Per runtime handler, in place of `settings`.
  std::map<std::string, policy::Settings, std::less<>> by_handler;
};

class Engine {
 public:
  /// `calls`, `store` and `log` must outlive the engine.
  Engine(policy::Topology topology, Options options, vmm::Roots roots, AffinityCalls& calls,
         state::Store& store, const base::Log& log);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  /// Takes back what the state files tell, then runs the line for the whole node.
  Outcome adopt();

  /// Checks an event that a person or a program sent (the API) against the machine and against what
  /// is known, then handles it. An error changes nothing.
  base::Result<Outcome> submit(const policy::Event& event);

  /// Handles an event of a source that tells what already is so: it cannot be refused.
  Outcome handle(const policy::Event& event);

  /// What a monitor (QMP) told of a sandbox's vCPUs and iothreads; runs the line for it.
  Outcome take_monitor_facts(std::string_view sandbox, vmm::MonitorFacts facts);

  /// Runs the line again: for one sandbox, or for all.
  base::Result<Outcome> reconcile(std::string_view sandbox);
  Outcome reconcile_all();

  /// The drift check: reads what can have changed behind our back, and runs the line for sandboxes
  /// where something did. Cheap when nothing did.
  Outcome check_drift();

  /// Someone wrote the cgroup in `directory`: runs the line for the sandboxes in it.
  Outcome cgroup_written(const std::string& directory);

  /// Reads the kernel afresh and reports each breach of the invariants. Writes nothing.
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
  const policy::Ledger& ledger() const { return ledger_; }
  const Counters& counters() const { return counters_; }

  /// Ids of VM sandboxes, ascending.
  std::vector<std::string> sandbox_ids() const;
  std::optional<SandboxView> view(std::string_view sandbox) const;

  /// Called for each thing that happens; one listener, set once by the composition root.
  void on_happening(std::function<void(const Happening&)> listener);

 private:
  struct Run;

  using Sandboxes = std::map<std::string, std::unique_ptr<Sandbox>, std::less<>>;

  Outcome run(const std::vector<Sandbox*>& affected, std::string_view why);
  void happened(std::string kind, std::string_view sandbox, std::string text);

  policy::Topology topology_;
  Options options_;
  vmm::Roots roots_;
  AffinityCalls& calls_;
  state::Store& store_;
  const base::Log& log_;
  policy::Ledger ledger_;
  Sandboxes sandboxes_;
  Counters counters_;
  std::function<void(const Happening&)> listener_;
  std::uint64_t sequence_ = 0;
};

}  // namespace ka::engine
