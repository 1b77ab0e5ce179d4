// SPDX-License-Identifier: Apache-2.0
// The agent without its sockets: the host's request, the guest's state, and the one line
// between them: read -> map -> place -> read again -> report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "guest-agent/agent/containers.hpp"
#include "guest-agent/agent/cpus.hpp"
#include "guest-agent/agent/halt_polling.hpp"
#include "guest-agent/agent/hierarchy.hpp"
#include "guest-agent/agent/kernel.hpp"
#include "guest-agent/agent/latency_meter.hpp"
#include "guest-agent/agent/stale.hpp"
#include "guest-agent/agent/system_tasks.hpp"
#include "policy/facts/guest.hpp"

namespace ka::agent {

class Agent {
 public:
  /// Both must outlive it. Reads the CPUs; places nothing.
  Agent(const Roots& roots, const Calls& calls);

  /// Applies the host's request to containers and returns the result. Everything else that
  /// runs in the guest takes far longer, and waits for run_background().
  const policy::GuestReport& apply(policy::GuestSpec spec);

  /// CPUs came or went: everything is mapped again.
  void cpus_changed();
  /// A hook reports a container as created or stopped; a new one is placed before this returns.
  void record_container(const std::string& container, bool stopped);
  /// Cgroups came or went, or another program wrote a cpuset.
  void cgroups_changed();
  /// Whether the cpusets of these cgroups are as the agent wrote them: then the last write changed
  /// nothing, and most likely was the agent's own.
  bool has_given(const std::vector<std::filesystem::path>& cgroups) const;
  /// Does a part of the background work: writes cpus.json for workloads, moves interrupts, kernel
  /// threads and kata-agent to their CPUs, lets idle CPUs poll, reads containers' processes for
  /// status.
  /// True: there is more to do; call again after requests that have arrived meanwhile have been
  /// answered.
  bool run_background();
  /// Places threads created since. Cheap; does nothing where cgroups confine them.
  void poll();

  /// Measures latencies on CPUs of the guest; absent: there are no such CPUs, or another
  /// measurement goes on. See meter().
  std::optional<std::uint64_t> measure(const guest::LatencyRequest& request);
  LatencyMeter& meter() { return meter_; }

  const policy::GuestReport& report() const { return report_; }
  /// Where news comes from: cgroups in which containers appear, and those of containers.
  std::vector<std::filesystem::path> places_to_watch() const;
  /// Whether poll() must be called periodically.
  bool needs_polling() const { return containers_.by_threads(); }

 private:
  void run();
  void observe_mounts();
  void walk_tree();
  void keep_processes(policy::GuestReport& report) const;
  void release(policy::GuestReport& report);
  void begin_system();
  void publish(policy::GuestReport report);
  void write_notice() const;
  policy::GuestCpuSet online() const;

  const Roots& roots_;
  const Calls& calls_;
  CpuReader cpu_reader_;
  Containers containers_;
  SystemTasks system_tasks_;
  HaltPolling halt_polling_;
  LatencyMeter meter_;
  Hierarchy hierarchy_;
  Tree tree_;
  /// Containers that a hook reported. Their cgroups need not have names that look like containers'.
  std::set<std::string> reported_;
  Stale stale_;
  bool requested_ = false;  ///< the host asked for something
  policy::GuestSpec spec_;
  policy::GuestReport report_;
};

}  // namespace ka::agent
