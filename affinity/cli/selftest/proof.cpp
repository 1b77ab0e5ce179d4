// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/proof.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/selftest/guest_affinity.hpp"
#include "base/files.hpp"

namespace ka::cli::selftest {
namespace {

using By = Finding::By;
using Level = Finding::Level;
using std::chrono::milliseconds;

/// Reading must not keep the node busy.
constexpr milliseconds kPause{1000};
constexpr int kPausePerReading = 3;
constexpr std::chrono::seconds kPeriod{10};

Finding finding(By by, bool holds, std::string text) {
  return {by, holds ? Level::kHolds : Level::kBroken, std::move(text)};
}

/// The error as a finding against the witness that failed to answer.
Findings failed(By by, const base::Error& error) { return {finding(by, false, error.message)}; }

std::string first_broken(const Findings& findings) {
  const auto found = std::ranges::find(findings, Level::kBroken, &Finding::level);
  return found == findings.end() ? std::string() : found->text;
}

std::string first_of(Level level, const Report& report) {
  for (const Step& step : report.steps) {
    const auto found = std::ranges::find(step.findings, level, &Finding::level);
    if (found != step.findings.end()) return found->text;
  }
  return {};
}

void append(Findings& to, Findings more) { std::ranges::move(more, std::back_inserter(to)); }

}  // namespace

Proof::Proof(Dependencies dependencies, std::chrono::seconds limit, Report& report)
    : dependencies_(std::move(dependencies)),
      limit_(limit),
      report_(report),
      began_(dependencies_.clock.now()) {
  start_timer();
}

void Proof::start_timer() {
  deadline_ = dependencies_.clock.now() + limit_;
  dependencies_.limit_calls(limit_);
}

double Proof::seconds() const {
  return std::chrono::duration<double>(dependencies_.clock.now() - began_).count();
}

/// The first thing that went wrong decides.
void Proof::conclude(Verdict verdict, const std::string& reason) {
  if (!report_.reason.empty()) return;
  report_.verdict = verdict;
  report_.reason = reason;
}

Proof::Outcome Proof::repeat(const Check& check, Findings& findings) const {
  while (true) {
    const auto before = dependencies_.clock.now();
    findings = check();
    if (all_hold(findings)) return Outcome::kHeld;
    if (!dependencies_.pause(milliseconds(0))) return Outcome::kInterrupted;
    const auto after = dependencies_.clock.now();
    if (after > deadline_) return Outcome::kLate;
    const auto elapsed = std::chrono::duration_cast<milliseconds>(after - before);
    if (!dependencies_.pause(std::max(kPause, elapsed * kPausePerReading))) {
      return Outcome::kInterrupted;
    }
  }
}

bool Proof::step(const std::string& text, Verdict otherwise, const Check& check) {
  dependencies_.announce(text);
  Step step{text, seconds(), 0, {}};
  const Outcome outcome = repeat(check, step.findings);
  step.seconds = seconds() - step.began;
  report_.steps.push_back(step);
  if (outcome == Outcome::kHeld) return true;
  if (outcome == Outcome::kInterrupted) {
    conclude(Verdict::kInterrupted, "interrupted by a signal");
  } else {
    conclude(otherwise, first_broken(step.findings));
  }
  return false;
}

bool Proof::start(const Pod& pod) {
  const auto started = dependencies_.launcher.start(pod);
  if (!started) return fail(Verdict::kCannotRun, started.error().message);
  return goes_on();
}

bool Proof::fail(Verdict verdict, const std::string& reason) {
  if (goes_on()) conclude(verdict, reason);
  return false;
}

bool Proof::goes_on() {
  const bool quiet = dependencies_.pause(milliseconds(0));
  if (!quiet) conclude(Verdict::kInterrupted, "interrupted by a signal");
  return quiet;
}

bool Proof::prove(const Choice& choice) {
  const auto shared_uid = new_uid();
  const auto uid = new_uid();
  if (!shared_uid || !uid) {
    return fail(Verdict::kCannotRun, "cannot read /proc/sys/kernel/random/uuid");
  }
  subject_ = {*uid, choice.cpus, dependencies_.launcher.witness()};
  return start(shared_pod(choice, *shared_uid)) &&
         step("a burstable pod starts in the shared pool", Verdict::kCannotRun,
              [&] { return check_shared_pod(*shared_uid); }) &&
         start(vm_pod(choice, *uid)) &&
         step(fmt::format("a pod in a VM is assigned {} CPUs", choice.cpus), Verdict::kCannotRun,
              [this] { return check_assignment(); }) &&
         step("its VM starts", Verdict::kCannotRun,
              [this] { return check_start(dependencies_.reader.read(subject_.uid)); }) &&
         step("the daemon reports the pod", Verdict::kViolated,
              [this] { return check_discovery(); }) &&
         step("the kernel confines each thread", Verdict::kViolated,
              [this] { return check_masks(); }) &&
         step("the daemon agrees", Verdict::kViolated, [this] { return check_word(); }) &&
         step("the guest confines the container", Verdict::kViolated,
              [this] { return check_guest(); }) &&
         goes_on();
}

bool Proof::request(const std::string& text, const std::string& target) {
  return step(text, Verdict::kViolated, [&]() -> Findings {
    const auto answer = dependencies_.call("POST", target.c_str());
    if (!answer) return failed(By::kDaemon, answer.error());
    return {finding(By::kDaemon, true, "POST " + target)};
  });
}

std::vector<Sample> Proof::sample() {
  std::vector<Sample> samples;
  for (const ThreadSeen& thread : dependencies_.reader.read(subject_.uid).own) {
    const auto time = dependencies_.reader.time_of(thread.tid);
    if (time) samples.push_back({thread, *time});
  }
  return samples;
}

bool Proof::wait_period() {
  for (auto left = kPeriod; left.count() > 0; left -= std::chrono::seconds(1)) {
    if (!dependencies_.pause(std::chrono::seconds(1))) {
      conclude(Verdict::kInterrupted, "interrupted by a signal");
      return false;
    }
    const auto assignments = dependencies_.launcher.assignments();
    if (assignments && assignments->all() == own_) continue;
    return fail(Verdict::kCannotRun, assignments
                                         ? "another pod was assigned CPUs during the demonstration"
                                         : assignments.error().message);
  }
  return true;
}

bool Proof::measure(const policy::CpuSet& busy, std::vector<Sample>& samples) {
  const auto load = dependencies_.occupy(busy);
  const std::vector<Sample> begin = sample();
  if (!wait_period()) return false;
  samples = elapsed(begin, sample());
  return true;
}

bool Proof::measure_released(Demonstration& shown) {
  const std::string id = "?id=" + sandbox_;
  if (!request("the daemon releases the VM's threads", "/v1/release" + id)) return false;
  const bool measured = measure(shown.busy, shown.before);
  return request("the daemon places them again", "/v1/reconcile" + id) && measured;
}

bool Proof::demonstrate() {
  start_timer();
  const auto assignments = dependencies_.launcher.assignments();
  if (!assignments) return fail(Verdict::kCannotRun, assignments.error().message);
  Demonstration shown{.period = kPeriod, .busy = assignments->pool, .before = {}, .after = {}};
  const bool measured = measure_released(shown) &&
                        step("the kernel confines each thread again", Verdict::kViolated,
                             [this] { return check_masks(); }) &&
                        measure(shown.busy, shown.after);
  if (measured) report_.demo = std::move(shown);
  return measured;
}

void Proof::run(const Choice& choice, bool demo) {
  const bool proved = prove(choice) && (!demo || demonstrate());
  const Verdict verdict = report_.verdict;
  const std::string reason = std::exchange(report_.reason, {});
  remove_pods();
  if (!proved) return conclude_first(verdict, reason);
  for (const Level level : {Level::kDegraded, Level::kNotSeen}) {
    const std::string found = first_of(level, report_);
    if (!found.empty()) conclude(Verdict::kDegraded, found);
  }
}

/// What went wrong before the removal decides; pods that are left are named all the same.
void Proof::conclude_first(Verdict verdict, const std::string& reason) {
  report_.verdict = verdict;
  report_.reason = reason + (report_.reason.empty() ? "" : "; then: " + report_.reason);
}

void Proof::remove_pods() {
  start_timer();
  const bool gone = step("the pods end, and their CPUs return to the shared pool",
                         Verdict::kViolated, [this] { return remove_and_check_daemon(); });
  if (!gone) return;
  if (const auto forgotten = dependencies_.launcher.forget(); !forgotten) {
    conclude(Verdict::kViolated, forgotten.error().message);
  }
}

bool Proof::remove_leftovers() {
  if (const auto found = dependencies_.launcher.find_leftovers(); !found) {
    return fail(Verdict::kCannotRun, found.error().message);
  }
  if (dependencies_.launcher.uids().empty()) return true;
  if (!step("pods of an interrupted self-test end", Verdict::kCannotRun,
            [this] { return remove_and_check(); })) {
    return false;
  }
  const auto forgotten = dependencies_.launcher.forget();
  if (!forgotten) conclude(Verdict::kCannotRun, forgotten.error().message);
  start_timer();
  return forgotten.has_value();
}

Findings Proof::unassigned(const base::Error& error) const {
  return failed(dependencies_.launcher.witness(), error);
}

Findings Proof::check_shared_pod(const std::string& uid) {
  const bool runs = !dependencies_.reader.read(uid).containers.empty();
  return {finding(
      By::kKernel, runs,
      runs ? "containerd runs its container"
           : "containerd does not run the burstable pod's container; see the log of kubelet or "
             "containerd")};
}

Findings Proof::check_assignment() const {
  const auto assignments = dependencies_.launcher.assignments();
  if (!assignments) return unassigned(assignments.error());
  return selftest::check_assignment(*assignments, subject_);
}

Findings Proof::check_discovery() const {
  const auto sandboxes = dependencies_.call("GET", "/v1/sandboxes");
  if (!sandboxes) return failed(By::kDaemon, sandboxes.error());
  return selftest::check_discovery(subject_, *sandboxes);
}

Findings Proof::check_masks() {
  const auto assignments = dependencies_.launcher.assignments();
  if (!assignments) return unassigned(assignments.error());
  const Reading reading = dependencies_.reader.read(subject_.uid);
  own_ = assignments->of_pod(subject_.uid);
  sandbox_ = reading.sandbox;
  return selftest::check_masks(*assignments, subject_, reading);
}

Findings Proof::check_word() {
  const auto node = dependencies_.call("GET", "/v1/node");
  if (!node) return failed(By::kDaemon, node.error());
  const auto report = dependencies_.call("POST", "/v1/verify");
  if (!report) return failed(By::kDaemon, report.error());
  const auto sandboxes = dependencies_.call("GET", "/v1/sandboxes");
  if (!sandboxes) return failed(By::kDaemon, sandboxes.error());
  const auto assignments = dependencies_.launcher.assignments();
  if (!assignments) return unassigned(assignments.error());
  return check_report(*assignments, subject_, dependencies_.reader.read(subject_.uid),
                      {*node, *sandboxes, *report});
}

Findings Proof::check_guest() {
  const Reading reading = dependencies_.reader.read(subject_.uid);
  if (reading.containers.empty()) return {guest_not_seen("containerd has no container")};
  const auto printed = dependencies_.run_inside(reading.containers.begin()->second);
  if (!printed) return {guest_not_seen(printed.error().message)};
  const auto affinity = parse_guest_affinity(*printed);
  if (!affinity) return {guest_not_seen(affinity.error().message)};
  return {selftest::check_guest(*affinity, reading, own_)};
}

Findings Proof::remove_and_check() {
  Launcher& launcher = dependencies_.launcher;
  if (const auto removed = launcher.remove(); !removed) return unassigned(removed.error());
  const auto assignments = launcher.assignments();
  if (!assignments) return unassigned(assignments.error());
  Findings findings;
  bool running = !sandbox_.empty() && dependencies_.reader.has_processes(sandbox_);
  policy::CpuSet held = own_ - assignments->pool;
  for (const std::string& uid : launcher.uids()) {
    running = running || dependencies_.reader.has_tasks(uid);
    held |= assignments->of_pod(uid);
  }
  findings.push_back(finding(By::kKernel, !running,
                             running ? "tasks or processes of the self-test's pods still run"
                                     : "no task or process of the pods is left"));
  findings.push_back(finding(
      launcher.witness(), held.empty(),
      held.empty() ? "the shared pool is " + policy::format_list(assignments->pool)
                   : "CPUs " + policy::format_list(held) + " are not back in the shared pool"));
  return findings;
}

Findings Proof::remove_and_check_daemon() {
  Findings findings = remove_and_check();
  const auto sandboxes = dependencies_.call("GET", "/v1/sandboxes");
  if (!sandboxes) {
    append(findings, failed(By::kDaemon, sandboxes.error()));
    return findings;
  }
  const bool known = all_hold(selftest::check_discovery(subject_, *sandboxes));
  findings.push_back(
      finding(By::kDaemon, !known, known ? "still reports the pod" : "no longer reports the pod"));
  return findings;
}

base::Result<std::string> new_uid() {
  auto text = base::read_file("/proc/sys/kernel/random/uuid");
  if (text && text->ends_with('\n')) text->pop_back();
  return text;
}

}  // namespace ka::cli::selftest
