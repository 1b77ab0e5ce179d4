// SPDX-License-Identifier: Apache-2.0
// A sandbox in full: its threads, containers, pins, cgroup, memory, devices, warnings.
#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <vector>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/client/grade.hpp"
#include "affinity/cli/client/interrupted.hpp"
#include "affinity/cli/status/describe.hpp"
#include "affinity/messages/interruptions.hpp"
#include "affinity/messages/terms.hpp"
#include "base/json/lookup.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;
using messages::counted;

std::string size_text(const json::value& object, const char* name) {
  return messages::size_text(static_cast<std::uint64_t>(number_of(object, name)));
}

std::string name_of(const json::value& container) {
  const std::string name = text_of(container, "name");
  return text_of(container, "id") + (name.empty() ? "" : " (" + name + ")");
}

/// The guest's status; null: none.
const json::value* find_guest(const json::value& of) {
  const json::value& guest = base::member(of, "guest");
  return guest.is_object() ? &guest : nullptr;
}

/// ", in the guest CPUs 1-2 (5 threads, by cgroup-v2)"
std::string guest_words(const json::value& container) {
  const json::value* guest = find_guest(container);
  if (guest == nullptr) return {};
  const std::string problem = text_of(*guest, "problem");
  if (problem == "not-found") return ", not in the guest yet";
  const std::string method = text_of(*guest, "method");
  if (method == "none") return ", in the guest CPUs " + text_of(*guest, "wanted") + " (all)";
  if (method == "kata-agent") {
    return fmt::format(", in the guest CPUs {} requested from kata-agent{}",
                       text_of(*guest, "wanted"), problem.empty() ? "" : ": " + problem);
  }
  std::string text = fmt::format(", in the guest CPUs {} ({}, by {})", text_of(*guest, "actual"),
                                 counted(number_of(*guest, "threads"), "thread"), method);
  return problem.empty() ? text : text + " NOT as requested: " + problem;
}

/// ", in the guest NOT confirmed (numbers-uncertain)", and what kata-agent was asked before.
std::string guest_doubt_words(const json::value& container) {
  const std::string doubt = text_of(container, "guest_doubt");
  if (doubt.empty()) return {};
  std::string text = ", in the guest NOT confirmed (" + doubt + ")";
  const std::string cpus = text_of(base::member(container, "guest_told"), "cpus");
  return cpus.empty() ? text : text + ", kata-agent was asked for CPUs " + cpus;
}

/// "  guest: vsock://3:1031, kata-affinity-agent 0.1.0, idle vCPUs poll"
std::string guest_line(const json::value& sandbox) {
  const json::value* guest = find_guest(sandbox);
  if (guest == nullptr) return {};
  const std::string address = text_of(*guest, "address");
  const bool is_pending = guest->as_object().contains("common") && !flag_of(*guest, "current");
  return fmt::format("  guest: {}{}{}{}{}\n", address.empty() ? "" : address + ", ",
                     flag_of(*guest, "connected") ? "" : "NOT placed: ", text_of(*guest, "text"),
                     is_pending ? ", its containers NOT confirmed" : "",
                     text_of(*guest, "idle") == "polling" ? ", idle vCPUs poll" : "");
}

/// "    ! degraded: CPU 2 also carries emulator", and what takes it away.
std::string obstacle_lines(const json::value& container) {
  std::string text;
  for (const json::value& obstacle : array_of(container, "obstacles")) {
    text += fmt::format("    ! degraded: {}\n      -> {}\n", text_of(obstacle, "text"),
                        text_of(obstacle, "remedy"));
  }
  return text;
}

std::string container_line(const json::value& container) {
  const std::string cpus = text_of(container, "cpus");
  std::string text = "  container " + name_of(container) + ": ";
  text += cpus.empty() ? "no cpuset" : messages::cpus_text(cpus);
  if (flag_of(container, "exclusive")) text += " exclusive";
  const std::string vcpus = text_of(container, "vcpus");
  if (!vcpus.empty()) text += ", v" + messages::cpus_text(vcpus);
  if (flag_of(container, "dedicated")) text += " dedicated";
  if (flag_of(container, "exited")) text += ", exited";
  if (flag_of(container, "isolated")) text += ", isolated";
  text += guest_words(container) + guest_doubt_words(container);
  return text + '\n' + obstacle_lines(container);
}

/// "  memory: 512 MiB on node 0, 3 MiB on node 1; wanted on 0: in place"
std::string memory_line(const json::value& sandbox) {
  const json::value& found = base::member(sandbox, "memory");
  if (!found.is_object()) return {};
  const std::string problem = text_of(found, "problem");
  if (!problem.empty()) return "  memory: " + problem + '\n';
  std::string nodes;
  for (const json::value& node : array_of(found, "nodes")) {
    nodes += (nodes.empty() ? "" : ", ") + size_text(node, "bytes") + " on node " +
             std::to_string(number_of(node, "node"));
  }
  std::string text = "  memory: " + (nodes.empty() ? "none" : nodes);
  if (flag_of(found, "moving")) {
    text += "; moving, " + size_text(found, "moved") + " done";
  }
  const std::string say = text_of(found, "text");
  return text + (say.empty() ? "" : "; " + say) + '\n';
}

/// Interrupts of one device of which the same is true.
struct InterruptRow {
  std::string actual, remark;
  int number = 0;
};

std::vector<InterruptRow> interrupt_rows(const json::value& device) {
  std::vector<InterruptRow> rows;
  for (const json::value& interrupt : array_of(device, "interrupts")) {
    InterruptRow row{text_of(interrupt, "actual"), text_of(interrupt, "problem"), 1};
    if (row.remark.empty() && flag_of(interrupt, "drift")) {
      row.remark = "wanted on " + text_of(interrupt, "wanted");
    }
    const auto same = std::ranges::find_if(rows, [&](const InterruptRow& known) {
      return known.actual == row.actual && known.remark == row.remark;
    });
    if (same == rows.end()) {
      rows.push_back(std::move(row));
    } else {
      ++same->number;
    }
  }
  return rows;
}

/// "  device 0000:01:00.0: 5 interrupts on CPUs 2-3"
std::string device_lines(const json::value& sandbox) {
  std::string text;
  for (const json::value& device : array_of(sandbox, "devices")) {
    const std::string name = "  device " + text_of(device, "id") + ": ";
    const std::vector<InterruptRow> rows = interrupt_rows(device);
    if (rows.empty()) text += name + "no interrupts\n";
    for (const InterruptRow& row : rows) {
      text += name + counted(row.number, "interrupt") + " on " + messages::cpus_text(row.actual) +
              (row.remark.empty() ? "" : "  <- " + row.remark) + '\n';
    }
  }
  return text;
}

/// "  cgroup: CPUs 0-3, written by kata-affinity (others wrote 2-3)"
std::string cgroup_line(const json::value& sandbox) {
  const std::string problem = text_of(sandbox, "cgroup_problem");
  if (!problem.empty()) return "  cgroup: NOT managed: " + problem + '\n';
  if (!flag_of(sandbox, "cgroup_managed")) return {};
  const std::string cpus = text_of(sandbox, "cgroup_cpus");
  if (!base::member(sandbox, "cgroup_theirs").is_string()) return "  cgroup: CPUs " + cpus + '\n';
  const std::string others = text_of(sandbox, "cgroup_theirs");
  return "  cgroup: CPUs " + cpus + ", written by kata-affinity (others wrote " +
         (others.empty() ? "nothing" : others) + ")\n";
}

/// "  grade: quiet"
std::string grade_line(const json::value& sandbox) {
  const std::string grade = grade_text(sandbox);
  return grade.empty() ? "" : "  grade: " + grade + '\n';
}

/// "  partition: CPUs 2-3", "  partition: none: its cgroup has no cpuset".
std::string partition_line(const json::value& sandbox) {
  const json::value& partition = base::member(sandbox, "partition");
  if (!partition.is_object()) return {};
  const std::string problem = text_of(partition, "problem");
  const std::string cpus = messages::cpus_text(text_of(partition, "cpus"));
  return "  partition: " + (problem.empty() ? cpus : "none: " + problem) + '\n';
}

std::string value_text(const json::value& value) {
  const auto shown = [&value](std::string_view name) {
    const json::value& one = base::member(value, name);
    if (one.is_number()) return std::to_string(number_of(value, name));
    return one.is_string() ? text_of(value, name) : std::string("unknown");
  };
  const std::string problem = text_of(value, "problem");
  std::string text = shown("wanted");
  if (flag_of(value, "drift")) text += " NOT set, it is " + shown("actual");
  return text + (problem.empty() ? "\n" : ": " + problem + '\n');
}

/// "  vCPU 1: rdtclass gold", "  vCPU 1: rdtclass gold NOT set: resctrl is not mounted".
std::string rdt_line(const json::value& rdt) {
  const std::string problem = text_of(rdt, "problem");
  return fmt::format("  vCPU {}: rdtclass {}{}\n", number_of(rdt, "vcpu"), text_of(rdt, "wanted"),
                     problem.empty() ? "" : " NOT set: " + problem);
}

/// "  class: container c1 has scheduling-class gold", and what classes come to:
/// "  vCPU 1: nice 5", "  block I/O weight: 200".
std::string class_lines(const json::value& sandbox) {
  const json::value& classes = base::member(sandbox, "classes");
  std::string text;
  for (const json::value& request : array_of(classes, "requests")) {
    const bool granted = flag_of(request, "granted");
    text += fmt::format("  class: container {} {} {} {}{}\n", text_of(request, "container"),
                        granted ? "has" : "does NOT have", text_of(request, "kind"),
                        text_of(request, "name"), granted ? "" : ": " + text_of(request, "text"));
  }
  for (const json::value& nice : array_of(classes, "nice")) {
    if (!base::member(nice, "wanted").is_number()) continue;
    text += fmt::format("  vCPU {}: nice {}", number_of(nice, "vcpu"), value_text(nice));
  }
  const json::value& weight = base::member(classes, "io_weight");
  if (base::member(weight, "wanted").is_number())
    text += "  block I/O weight: " + value_text(weight);
  for (const json::value& limits : array_of(classes, "io_max")) {
    text += fmt::format("  block I/O of disk {}: {}", text_of(limits, "disk"), value_text(limits));
  }
  for (const json::value& rdt : array_of(classes, "rdt")) text += rdt_line(rdt);
  return text;
}

long long count_dedicated(const json::value& sandbox) {
  return std::ranges::count_if(array_of(sandbox, "vcpus"), [](const json::value& vcpu) {
    return text_of(vcpu, "role") == "dedicated";
  });
}

/// "  manual pin: emulator on CPUs 0-1, by uid 0 (pid 71) at 2026-01-31T12:00:00.000Z, 590 s left"
std::string pin_lines(const json::value& sandbox) {
  std::string text;
  for (const json::value& pin : array_of(sandbox, "overrides")) {
    text += fmt::format("  manual pin: {} on {}", text_of(pin, "thread"),
                        messages::cpus_text(text_of(pin, "cpus")));
    if (number_of(pin, "pid") > 0) {
      text += fmt::format(", by uid {} (pid {})", number_of(pin, "uid"), number_of(pin, "pid"));
    }
    if (const std::string since = text_of(pin, "since"); !since.empty()) text += " at " + since;
    const bool ends = base::member(pin, "expires_in").is_number();
    text += ends ? fmt::format(", {} s left\n", number_of(pin, "expires_in")) : "\n";
  }
  return text;
}

/// "  interruptions: 14 times, 3.5 ms in 120 s; most on CPU 4 (vCPU 1), 12 times"
std::string interruptions_line(const json::value& sandbox) {
  if (count_dedicated(sandbox) == 0) return {};
  if (const std::string problem = uncounted_of(sandbox); !problem.empty()) {
    return "  interruptions: not counted: " + problem + '\n';
  }
  const auto cpus = interrupted_of(sandbox);
  if (cpus.empty()) return {};
  messages::Interrupted all;
  for (const InterruptedCpu& cpu : cpus) all += cpu.count;
  const auto most = std::ranges::max_element(
      cpus, {}, [](const InterruptedCpu& cpu) { return cpu.count.slices; });
  std::string text = "  interruptions: " + messages::interruptions_text(all);
  if (cpus.size() > 1 && most->count.slices > 0) {
    text += fmt::format("; most on CPU {} (vCPU {}), {}", most->cpu, most->vcpu,
                        counted(most->count.slices, "time"));
  }
  return text + '\n';
}

/// Values that are not as a resource class wants them.
long long count_unset(const json::value& sandbox) {
  const json::value& classes = base::member(sandbox, "classes");
  const auto is_unset = [](const json::value& value) { return flag_of(value, "drift"); };
  return std::ranges::count_if(array_of(classes, "nice"), is_unset) +
         std::ranges::count_if(array_of(classes, "rdt"), is_unset) +
         std::ranges::count_if(array_of(classes, "io_max"), is_unset) +
         (is_unset(base::member(classes, "io_weight")) ? 1 : 0);
}

/// Exclusive containers that do not have their CPUs to themselves.
long long count_crowded(const json::value& sandbox) {
  return std::ranges::count_if(array_of(sandbox, "containers"), [](const json::value& container) {
    return !array_of(container, "obstacles").empty();
  });
}

}  // namespace

std::string state_of(const json::value& sandbox) {
  if (flag_of(sandbox, "released")) return "released";
  const long long drift = number_of(sandbox, "drift");
  const auto stuck =
      std::ranges::count_if(array_of(sandbox, "threads"), [](const json::value& thread) {
        return !flag_of(thread, "drift") && !text_of(thread, "problem").empty();
      });
  std::string state = drift == 0 ? "" : counted(drift, "thread") + " NOT as planned";
  if (stuck > 0) {
    state += (state.empty() ? "" : ", ") + counted(stuck, "thread") + " CANNOT be placed";
  }
  if (const long long interrupts = number_of(sandbox, "interrupt_drift"); interrupts > 0) {
    state += (state.empty() ? "" : ", ") + counted(interrupts, "interrupt") + " NOT as planned";
  }
  if (const long long unset = count_unset(sandbox); unset > 0) {
    state += (state.empty() ? "" : ", ") + counted(unset, "class value") + " NOT set";
  }
  if (!text_of(sandbox, "trouble").empty())
    state += (state.empty() ? "" : ", ") + std::string("NOT SEEN");
  if (state.empty()) state = "as planned";
  if (const long long crowded = count_crowded(sandbox); crowded > 0) {
    state += ", " + counted(crowded, "container") + " NOT isolated";
  }
  return state + (flag_of(sandbox, "observed") ? " (observe: nothing is written)" : "");
}

std::string describe_sandbox(const json::value& sandbox) {
  const std::string pod = text_of(sandbox, "pod_name");
  std::string text = fmt::format(
      "sandbox {}{}: mask {}, mems {}, VMM {}, {}\n", text_of(sandbox, "id"),
      pod.empty() ? "" : " (" + pod + ")", or_none(text_of(sandbox, "mask")),
      or_none(text_of(sandbox, "mems")), number_of(sandbox, "vmm_pid"), state_of(sandbox));
  if (const std::string trouble = text_of(sandbox, "trouble"); !trouble.empty()) {
    text += "  ? cannot be read; last known state shown: " + trouble + '\n';
  }
  text += describe_threads(sandbox) + guest_line(sandbox);
  for (const json::value& one : array_of(sandbox, "containers")) text += container_line(one);
  text += pin_lines(sandbox);
  text +=
      class_lines(sandbox) + cgroup_line(sandbox) + grade_line(sandbox) + partition_line(sandbox);
  text += memory_line(sandbox);
  text += interruptions_line(sandbox);
  text += device_lines(sandbox);
  text += list_notes(array_of(sandbox, "warnings"), "!");
  text += list_notes(array_of(sandbox, "conflicts"), "?");
  text += list_notes(array_of(sandbox, "foreign_processes"), "!");
  return text + list_notes(array_of(sandbox, "unknown_threads"), "?");
}

}  // namespace ka::cli
