// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/noise.hpp"

#include <sched.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <set>
#include <utility>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/client/sandbox_name.hpp"
#include "affinity/cli/noise/counters.hpp"
#include "affinity/cli/noise/decoder.hpp"
#include "affinity/cli/noise/interruptions.hpp"
#include "affinity/cli/noise/recorder.hpp"
#include "affinity/cli/noise/report.hpp"
#include "affinity/cli/noise/stolen.hpp"
#include "affinity/cli/noise/targets.hpp"
#include "affinity/cli/noise/tasks.hpp"
#include "base/clock.hpp"
#include "base/descriptors.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;
using base::ErrorCode;
using base::Result;
using noise::Targets;

constexpr const char* kProc = "/proc";
constexpr const char* kSys = "/sys";
constexpr std::chrono::seconds kLongest = std::chrono::minutes(10);

Result<Targets> query(const Daemon& daemon) {
  auto node = daemon.get("/v1/node");
  if (!node) return unexpected(node.error());
  auto sandboxes = daemon.get("/v1/sandboxes");
  if (!sandboxes) return unexpected(sandboxes.error());
  return noise::read_targets(*node, *sandboxes);
}

Result<Targets> of_pod(const Targets& all, const std::string& name) {
  const auto id = resolve(noise::pods_of(all), name);
  if (!id) return unexpected(id.error());
  Targets owned = noise::owned_by(all, *id);
  if (owned.empty()) {
    return base::fail(ErrorCode::kNotFound,
                      "no pod \"" + name + "\" owns CPUs (kata-affinityctl map shows who does)");
  }
  return owned;
}

/// Without a daemon the CPUs can be looked at all the same, but nobody says what they are for.
Result<Targets> of_cpus(const Result<Targets>& all, const std::string& list, Output& output) {
  const auto cpus = policy::parse_list<policy::CpuTag>(list);
  if (!cpus || cpus->empty()) {
    return base::fail(ErrorCode::kInvalid,
                      "--cpus \"" + list + "\" is not a list of CPUs (such as 4-5,8)");
  }
  if (!all) output.print_message("owners not known, each task is shown: " + all.error().message);
  return noise::among(all.value_or(Targets{}), *cpus);
}

Result<Targets> choose(const NoiseOptions& options, Output& output) {
  if (options.seconds > kLongest.count()) {
    return base::fail(ErrorCode::kInvalid, "--for: at most 10m");
  }
  const Daemon daemon(options.socket);
  auto all = query(daemon);
  if (!options.cpus.empty()) return of_cpus(all, options.cpus, output);
  if (!all || options.sandbox.empty()) return all;
  return of_pod(*all, options.sandbox);
}

std::set<int> numbers_of(const Targets& targets) {
  std::set<int> cpus;
  for (const auto& [cpu, target] : targets) cpus.insert(cpu);
  return cpus;
}

/// So as not to be what it looks for. Where there is no other CPU it is, and is shown.
void leave(const std::set<int>& cpus) {
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return;
  for (const int cpu : cpus) {
    if (cpu < CPU_SETSIZE) CPU_CLR(static_cast<std::size_t>(cpu), &mask);
  }
  if (CPU_COUNT(&mask) > 0) ::sched_setaffinity(0, sizeof mask, &mask);
}

Result<json::object> record(const Targets& targets, std::chrono::seconds time) {
  const auto tracefs = noise::find_tracefs(kSys);
  if (!tracefs) return unexpected(tracefs.error());
  const auto decoder = noise::Decoder::read(*tracefs);
  if (!decoder) return unexpected(decoder.error());
  const std::set<int> cpus = numbers_of(targets);
  base::raise_descriptor_limit();
  const base::Clock clock;
  auto recorder = noise::Recorder::open(*decoder, clock, cpus);
  if (!recorder) return unexpected(recorder.error());
  leave(cpus);
  noise::Tasks tasks{base::ProcFs(kProc)};
  const noise::Stolen before = noise::read_stolen(kProc);
  const noise::Nanoseconds start = recorder->start();
  noise::Interruptions seen(cpus, start);
  const auto handle = [&](const noise::TraceEvent& event) {
    tasks.read(event);
    seen.add(event);
  };
  recorder->record(time, handle);
  const noise::Nanoseconds end = recorder->stop(handle);
  seen.finish(end);
  const noise::Stolen stolen = noise::since(before, noise::read_stolen(kProc));
  const noise::InterruptFiles interrupts(kProc, std::filesystem::path(kSys) / "kernel/debug");
  return noise::to_json(targets, seen, {tasks, interrupts}, stolen, end - start);
}

}  // namespace

Exit run(const NoiseOptions& options, Output& output) {
  if (options.counters) return noise::show_counters(options, output);
  const auto targets = choose(options, output);
  if (!targets) return output.fail(targets.error());
  if (targets->empty()) {
    output.print_message("no container owns CPUs; --cpus LIST looks at any");
    output.show(json::object{{"seconds", 0}, {"cpus", json::array()}}, [] { return ""; });
    return Exit::kDone;
  }
  const auto report = record(*targets, std::chrono::seconds(options.seconds));
  if (!report) return output.fail(report.error());
  output.show(*report, [&] { return noise::describe(*report); });
  return Exit::kDone;
}

}  // namespace ka::cli
