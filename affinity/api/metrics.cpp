// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/metrics.hpp"

#include <map>
#include <utility>
#include <variant>

#include "affinity/api/gauges.hpp"
#include "affinity/api/metrics_page.hpp"
#include "affinity/board/board.hpp"
#include "affinity/line/node.hpp"
#include "affinity/line/vcpu_waits.hpp"
#include "base/version/version.hpp"

namespace ka::api {
namespace {

using prometheus::MetricType;

/// How each kind of counter is shown.
struct ShowCounter {
  Page& page;
  const board::Counters& counters;
  const board::CounterInfo& info;

  void operator()(std::uint64_t board::Counters::* member) const {
    page.counter(info.name, info.help, counters.*member);
  }
  void operator()(board::CountsByLabel board::Counters::* member) const {
    page.labelled(MetricType::Counter, info.name, info.help, info.label, counters.*member);
  }
  template <std::size_t kSize>
  void operator()(board::Histogram<kSize> board::Counters::* member) const {
    page.histogram(info.name, info.help, counters.*member);
  }
};

void add_counters(Page& page, const board::Counters& counters) {
  for (const board::CounterInfo& info : board::kCounters) {
    std::visit(ShowCounter{page, counters, info}, info.member);
  }
}

void add_build(Page& page) {
  page.info("kata_affinity_build_info", "Version and commit of the daemon; always 1.",
            {{"version", version::number()}, {"commit", version::commit()}});
}

void add_trespasses(Page& page, const board::Trespasses& trespasses) {
  page.labelled(MetricType::Counter, "kata_affinity_foreign_cpus_touched_total",
                "CPUs owned by other pods on which a sandbox might run, by source.", "source",
                trespasses.cpus());
  page.labelled(
      "kata_affinity_foreign_cpus_seconds",
      "Time from learning that a CPU belongs to another pod until the last thread has left it.",
      "source", trespasses.durations());
  page.gauge("kata_affinity_foreign_cpus", "CPUs owned by other pods that sandboxes may use now.",
             trespasses.open_cpus());
}

/// A pod's name and a container's, or their ids where there is no name.
Labels wait_labels(const policy::ledger::PodRecord& pod, const std::string& container) {
  const auto record = pod.containers.find(container);
  const bool named = record != pod.containers.end() && !record->second.facts.name.empty();
  return {{"pod", pod.pod_name.empty() ? pod.id : pod.pod_name},
          {"container", named ? record->second.facts.name : container}};
}

/// Two sandboxes may briefly have one name (a pod that is recreated): they are one series.
void add_waits(Page& page, const line::Node& node, line::VcpuWaits& waits) {
  constexpr double kNanoseconds = 1e9;
  std::map<Labels, double> seconds;
  for (const auto& [id, sums] : waits.read()) {
    const policy::ledger::PodRecord* pod = node.ledger().find(id);
    if (pod == nullptr) continue;
    for (const auto& [container, sum] : sums) {
      seconds[wait_labels(*pod, container)] += static_cast<double>(sum) / kNanoseconds;
    }
  }
  page.labelled(MetricType::Counter, "kata_affinity_vcpu_wait_seconds_total",
                "Time that vCPUs were runnable but had no CPU, by the container they serve.",
                seconds);
}

/// Without CPUs where the kernel does not count them.
void add_interruptions(Page& page, const line::CpuInterruptions::Totals& totals) {
  constexpr double kNanoseconds = 1e9;
  std::map<std::string, double> slices, seconds, interrupts, passed_through;
  for (const auto& [number, total] : totals) {
    const std::string cpu = std::to_string(number);
    slices[cpu] = static_cast<double>(total.slices);
    seconds[cpu] = static_cast<double>(total.nanoseconds) / kNanoseconds;
    interrupts[cpu] = static_cast<double>(total.interrupts);
    passed_through[cpu] = static_cast<double>(total.passed_through);
  }
  page.labelled(MetricType::Counter, "kata_affinity_vcpu_interruptions_total",
                "How often the CPU of a dedicated vCPU was given to something else.", "cpu",
                slices);
  page.labelled(MetricType::Counter, "kata_affinity_vcpu_interruption_seconds_total",
                "Time that something else ran on the CPU of a dedicated vCPU.", "cpu", seconds);
  page.labelled(MetricType::Counter, "kata_affinity_vcpu_device_interrupts_total",
                "Interrupts of the host's devices on the CPU of a dedicated vCPU.", "cpu",
                interrupts);
  page.labelled(MetricType::Counter, "kata_affinity_vcpu_passed_through_interrupts_total",
                "Interrupts of devices passed through to VMs on the CPU of a dedicated vCPU.",
                "cpu", passed_through);
}

}  // namespace

std::string metrics_text(const line::Node& node, line::VcpuWaits& waits,
                         const line::CpuInterruptions::Totals& interruptions) {
  Page page;
  add_build(page);
  add_counters(page, node.board.counters());
  add_trespasses(page, node.board.trespasses());
  add_gauges(page, node);
  add_waits(page, node, waits);
  add_interruptions(page, interruptions);
  return page.text();
}

}  // namespace ka::api
