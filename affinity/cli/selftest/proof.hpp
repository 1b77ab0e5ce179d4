// SPDX-License-Identifier: Apache-2.0
// The steps of a self-test: start pods, compare the witnesses, remove the pods.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "affinity/cli/selftest/checks.hpp"
#include "affinity/cli/selftest/launcher.hpp"
#include "affinity/cli/selftest/pods.hpp"
#include "affinity/cli/selftest/reader.hpp"
#include "affinity/cli/selftest/report.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace ka::cli::selftest {

/// What a proof acts through. References outlive it.
struct Dependencies {
  Reader& reader;
  Launcher& launcher;
  /// A call of the daemon's API: method and target.
  std::function<base::Result<boost::json::object>(const char* method, const char* target)> call;
  /// What a program prints in the self-test's own container, by id (guest_affinity_commands()).
  std::function<base::Result<std::string>(const std::string& container)> run_inside;
  const base::Clock& clock;
  /// False: a signal ended the pause.
  std::function<bool(std::chrono::milliseconds)> pause;
  /// Keeps CPUs busy until what it returns is destroyed.
  std::function<std::shared_ptr<void>(const policy::CpuSet&)> occupy;
  /// A step begins.
  std::function<void(const std::string&)> announce;
  /// The time limit begins: calls that have no answer when it ends fail, and so do those that a
  /// signal interrupts, which `pause` then reports.
  std::function<void(std::chrono::seconds)> limit_calls;
};

class Proof {
 public:
  /// `limit`: for the proof, and once more for the removal of its pods. Fills in the report's
  /// verdict and steps.
  Proof(Dependencies dependencies, std::chrono::seconds limit, Report& report);

  /// Removes what earlier self-tests left and waits until it is gone. False: something is left,
  /// and the report names it.
  bool remove_leftovers();

  /// Starts the pods, checks, and removes them, whatever came of it. `demo`: also measures how long
  /// the VM's threads wait, released and placed.
  void run(const Choice& choice, bool demo);

 private:
  using Check = std::function<Findings()>;
  enum class Outcome { kHeld, kLate, kInterrupted };

  bool prove(const Choice& choice);
  /// The time limit applies to it again.
  bool demonstrate();
  /// A step: asks the daemon to do something with the pod's sandbox.
  bool request(const std::string& text, const std::string& target);
  /// Whatever comes of it, the VM's threads are placed again.
  bool measure_released(Demonstration& shown);
  /// The VM's threads during a period in which `busy` are busy. False: not completed.
  bool measure(const policy::CpuSet& busy, std::vector<Sample>& samples);
  std::vector<Sample> sample();
  /// False: a signal, or another pod was assigned CPUs, on which released threads could run.
  bool wait_period();
  void remove_pods();
  bool start(const Pod& pod);
  /// False: a signal has arrived; steps that hold at once do not wait for one.
  bool goes_on();
  /// Repeats a check until all of it holds. `otherwise`: the verdict where it does not in time.
  bool step(const std::string& text, Verdict otherwise, const Check& check);
  Outcome repeat(const Check& check, Findings& findings) const;
  void conclude(Verdict verdict, const std::string& reason);
  /// False, and concluded: interrupted where a signal has arrived.
  bool fail(Verdict verdict, const std::string& reason);
  void conclude_first(Verdict verdict, const std::string& reason);
  double seconds() const;
  void start_timer();

  Findings check_shared_pod(const std::string& uid);
  Findings check_assignment() const;
  /// The launcher's error as a finding.
  Findings unassigned(const base::Error& error) const;
  Findings check_masks();
  Findings check_discovery() const;
  Findings check_word();
  Findings check_guest();
  /// Has the pods removed. Whether they are gone, and their CPUs back in the shared pool.
  Findings remove_and_check();
  Findings remove_and_check_daemon();

  Dependencies dependencies_;
  std::chrono::seconds limit_;
  Report& report_;
  std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point deadline_;
  Subject subject_;
  policy::CpuSet own_;   ///< what the pod was assigned
  std::string sandbox_;  ///< the pod's, once it was seen
};

/// A random pod uid (RFC 9562), from the kernel.
base::Result<std::string> new_uid();

}  // namespace ka::cli::selftest
