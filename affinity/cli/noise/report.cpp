// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <string_view>
#include <vector>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/noise/remedy.hpp"

namespace ka::cli::noise {
namespace {

namespace json = boost::json;
using Micros = std::chrono::duration<double, std::micro>;

/// A cause on a CPU that is not for it.
struct Line {
  Cause cause;
  const Usage* usage = nullptr;
  const TaskFacts* task = nullptr;  ///< null: no task, or not known
  std::string name;
};

std::string_view kind_name(CauseKind kind) {
  switch (kind) {
    case CauseKind::kTask:
      return "task";
    case CauseKind::kInterrupt:
      return "interrupt";
    case CauseKind::kSoftirq:
      return "softirq";
    case CauseKind::kVector:
      return "cpu";
  }
  return "";
}

/// A task that ran all the time has no switch with its name.
std::string name_of(const Usage& usage, const TaskFacts* task) {
  return usage.name.empty() && task != nullptr ? task->name : usage.name;
}

std::vector<Line> lines_of(const Target& target, const CpuUsage& cpu, const Tasks& tasks) {
  std::vector<Line> lines;
  for (const auto& [cause, usage] : cpu.causes) {
    const bool is_task = cause.kind == CauseKind::kTask;
    const TaskFacts* task = is_task ? tasks.find(cause.id) : nullptr;
    if (is_task && is_tenant(target, cause.id, task)) continue;
    lines.push_back({cause, &usage, task, name_of(usage, task)});
  }
  std::ranges::stable_sort(lines, std::greater(),
                           [](const Line& line) { return line.usage->total; });
  return lines;
}

Remedy remedy_of(const Line& line, const InterruptFiles& interrupts) {
  const int id = line.cause.id;
  if (line.cause.kind == CauseKind::kTask) return remedy_for_task(line.name, line.task);
  if (line.cause.kind != CauseKind::kInterrupt) return remedy_for(line.cause.kind);
  const auto facts = interrupts.read(id);
  return remedy_for_interrupt(id, line.name, facts ? &*facts : nullptr);
}

json::object to_json(const Line& line, const InterruptFiles& interrupts) {
  const Remedy remedy = remedy_of(line, interrupts);
  return {{"kind", kind_name(line.cause.kind)},
          {"id", line.cause.id},
          {"name", line.name},
          {"cgroup", line.task == nullptr ? "" : line.task->cgroup},
          {"count", static_cast<std::int64_t>(line.usage->count)},
          {"total_us", Micros(line.usage->total).count()},
          {"longest_us", Micros(line.usage->longest).count()},
          {"movable", movable_name(remedy.movable)},
          {"by", remedy.by}};
}

json::array strings(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

json::array titles_of(const std::vector<Owner>& owners) {
  json::array titles;
  for (const Owner& owner : owners) titles.emplace_back(owner.title);
  return titles;
}

json::object to_json(int number, const Target& target, const CpuUsage& cpu,
                     const Machine& machine) {
  json::array causes;
  std::uint64_t count = cpu.rest.count;
  Nanoseconds total = cpu.rest.total;
  for (const Line& line : lines_of(target, cpu, machine.tasks)) {
    count += line.usage->count;
    total += line.usage->total;
    causes.push_back(to_json(line, machine.interrupts));
  }
  return {{"cpu", number},
          {"owners", titles_of(target.owners)},
          {"tenants", strings(target.tenants)},
          {"seen", cpu.events > 0},
          {"complete", cpu.lost == 0 && cpu.missed == 0 && cpu.rest.count == 0},
          {"lost", static_cast<std::int64_t>(cpu.lost)},
          {"missed", static_cast<std::int64_t>(cpu.missed)},
          {"count", static_cast<std::int64_t>(count)},
          {"total_us", Micros(total).count()},
          {"causes", std::move(causes)}};
}

std::string list_of(const json::value& cpu, std::string_view name) {
  std::string text;
  for (const json::value& one : array_of(cpu, name)) {
    if (!one.is_string()) continue;
    text += (text.empty() ? "" : "; ") + std::string(one.get_string());
  }
  return text;
}

std::string title_of(const json::value& cpu) {
  const std::string owners = list_of(cpu, "owners"), tenants = list_of(cpu, "tenants");
  return fmt::format("CPU {}: {}{}\n", number_of(cpu, "cpu"), owners.empty() ? "no owner" : owners,
                     tenants.empty() ? "" : " (" + tenants + ')');
}

std::string summary_of(const json::value& cpu, double seconds) {
  if (!flag_of(cpu, "seen")) return "  no event: what runs there ran all the time\n";
  const long long lost = number_of(cpu, "lost"), missed = number_of(cpu, "missed");
  std::string gaps = lost > 0 ? fmt::format("; {} events lost", lost) : "";
  if (missed > 0) gaps += fmt::format("; {} switches not reported by the kernel", missed);
  const long long stolen = number_of(cpu, "stolen_ms");
  return fmt::format(
      "  {}interrupted {} times, {:.1f} us of {:.1f} s{}{}\n",
      flag_of(cpu, "complete") ? "" : "at least: ", number_of(cpu, "count"),
      real_of(cpu, "total_us"), seconds, gaps,
      stolen > 0 ? fmt::format("; {} ms stolen by the hypervisor below", stolen) : "");
}

std::string row_of(const json::value& cause) {
  const std::string kind = text_of(cause, "kind");
  const bool has_number = kind == "task" || kind == "interrupt";
  const std::string name = text_of(cause, "name"), cgroup = text_of(cause, "cgroup");
  const bool has_cgroup = !cgroup.empty() && cgroup != "/";
  return fmt::format("  {:<9} {:<28} {:>7} {:>11.1f} {:>10.1f}  {:<8} {}{}\n", kind,
                     (name.empty() ? "?" : name) +
                         (has_number ? fmt::format(" [{}]", number_of(cause, "id")) : ""),
                     number_of(cause, "count"), real_of(cause, "total_us"),
                     real_of(cause, "longest_us"), text_of(cause, "movable"), text_of(cause, "by"),
                     has_cgroup ? " (in " + cgroup + ")" : "");
}

}  // namespace

json::object to_json(const Targets& targets, const Interruptions& seen, const Machine& machine,
                     const Stolen& stolen, std::chrono::nanoseconds time) {
  json::array cpus;
  for (const auto& [number, target] : targets) {
    const auto usage = seen.cpus().find(number);
    if (usage == seen.cpus().end()) continue;
    json::object cpu = to_json(number, target, usage->second, machine);
    const auto found = stolen.find(number);
    cpu["stolen_ms"] = found == stolen.end() ? 0 : found->second.count();
    cpus.push_back(std::move(cpu));
  }
  return {{"seconds", std::chrono::duration<double>(time).count()}, {"cpus", std::move(cpus)}};
}

std::string describe(const json::value& report) {
  std::string text;
  for (const json::value& cpu : array_of(report, "cpus")) {
    text += title_of(cpu) + summary_of(cpu, real_of(report, "seconds"));
    const json::array& causes = array_of(cpu, "causes");
    if (causes.empty()) continue;
    text += fmt::format("  {:<9} {:<28} {:>7} {:>11} {:>10}  {:<8} {}\n", "kind", "what", "times",
                        "total us", "longest", "movable", "by, or why not");
    for (const json::value& cause : causes) text += row_of(cause);
  }
  return text;
}

}  // namespace ka::cli::noise
