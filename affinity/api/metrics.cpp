// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "affinity/board/board.hpp"
#include "affinity/line/node.hpp"
#include "affinity/line/vcpu_waits.hpp"
#include "base/version/version.hpp"

namespace ka::api {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

/// What is summed over all sandboxes.
struct Totals {
  std::map<std::string_view, double> threads{};   ///< by role
  std::map<std::string_view, double> warnings{};  ///< by code
  double drifted = 0;
  double unmanaged = 0;
  double released = 0;
  double unseen = 0;
  double interrupts = 0;
  double drifted_interrupts = 0;
  double unmanaged_interrupts = 0;
  double isolated = 0;
  std::map<std::string_view, double> not_isolated{};  ///< by obstacle
  std::map<std::string_view, double> classes{};       ///< asked for: "granted", or why not
  double unset_classes = 0;                           ///< values
  std::map<std::string, double> memory{};             ///< bytes by node
  double misplaced = 0;                               ///< bytes
  std::map<std::string_view, double> guests{{"placed", 0}, {"behind", 0}, {"away", 0}, {"none", 0}};
};

/// How far the containers of a sandbox are placed inside its guest.
std::string_view state_of(const board::GuestView* guest) {
  if (guest == nullptr || guest->address.empty()) return "none";
  if (!guest->connected) return "away";
  return guest->current ? "placed" : "behind";
}

void add_memory(const policy::NodeBytes& bytes, Totals& totals) {
  for (const auto& [node, number] : bytes) {
    totals.memory[std::to_string(node)] += static_cast<double>(number);
  }
}

void add_memory(const board::MemoryView& memory, Totals& totals) {
  for (const policy::MemoryPart& part : memory.facts.parts) add_memory(part.placed, totals);
  add_memory(memory.facts.bound, totals);
  totals.misplaced += static_cast<double>(memory.plan.misplaced);
}

void add_interrupts(const line::SandboxView& view, Totals& totals) {
  totals.interrupts += static_cast<double>(view.interrupts.size());
  for (const line::InterruptView& interrupt : view.interrupts) {
    totals.drifted_interrupts += !view.released && interrupt.drifted() ? 1 : 0;
    totals.unmanaged_interrupts += interrupt.managed ? 0 : 1;
  }
}

void add_classes(const line::SandboxView& view, Totals& totals) {
  for (const policy::plan::RequestedClass& request : view.classes.requests) {
    ++totals.classes[request.refusal ? policy::plan::refusal_name(*request.refusal) : "granted"];
  }
  const auto is_unset = [&view](const auto& value) { return !view.released && value.drifted(); };
  totals.unset_classes += static_cast<double>(std::ranges::count_if(view.classes.nice, is_unset));
  totals.unset_classes += is_unset(view.classes.io_weight) ? 1 : 0;
}

/// A container with two obstacles counts for both.
void add_isolation(const line::SandboxView& view, Totals& totals) {
  for (const policy::plan::ContainerIsolation& container : view.isolation) {
    totals.isolated += container.isolated() ? 1 : 0;
    for (const policy::plan::NotIsolated& obstacle : container.obstacles) {
      ++totals.not_isolated[policy::plan::obstacle_name(obstacle.obstacle)];
    }
  }
}

Totals add_up(const line::Node& node) {
  Totals totals;
  for (const policy::plan::Obstacle obstacle : policy::plan::kObstacles) {
    totals.not_isolated[policy::plan::obstacle_name(obstacle)] = 0;
  }
  totals.classes["granted"] = 0;
  for (const policy::plan::ClassRefusal refusal : policy::plan::kClassRefusals) {
    totals.classes[policy::plan::refusal_name(refusal)] = 0;
  }
  for (const policy::RoleInfo& info : policy::kRoles) totals.threads[info.name] = 0;
  for (const std::string& id : node.sandbox_ids()) {
    const auto view = node.view(id);
    if (!view) continue;
    totals.released += view->released ? 1 : 0;
    totals.unseen += view->trouble.empty() ? 0 : 1;
    if (view->memory != nullptr) add_memory(*view->memory, totals);
    add_interrupts(*view, totals);
    add_isolation(*view, totals);
    add_classes(*view, totals);
    ++totals.guests[state_of(view->guest)];
    for (const line::ThreadView& thread : view->threads) {
      ++totals.threads[policy::role_name(thread.facts.role)];
      totals.drifted += !view->released && thread.drifted() ? 1 : 0;
      totals.unmanaged += thread.managed ? 0 : 1;
    }
    for (const auto& note : view->plan.warnings)
      ++totals.warnings[policy::plan::code_name(note.code)];
  }
  return totals;
}

/// Names and values, in order.
using Labels = std::vector<std::pair<std::string, std::string>>;

class Page {
 public:
  void counter(const char* name, const char* help, std::uint64_t value) {
    ClientMetric metric;
    metric.counter.value = static_cast<double>(value);
    family(name, help, MetricType::Counter).metric.push_back(std::move(metric));
  }

  void gauge(const char* name, const char* help, double value) {
    ClientMetric metric;
    metric.gauge.value = value;
    family(name, help, MetricType::Gauge).metric.push_back(std::move(metric));
  }

  void info(const char* name, const char* help, const Labels& labels) {
    ClientMetric metric;
    for (const auto& [label, text] : labels) metric.label.push_back({label, text});
    metric.gauge.value = 1;
    family(name, help, MetricType::Gauge).metric.push_back(std::move(metric));
  }

  template <typename Map>
  void labelled(MetricType type, const char* name, const char* help, const char* label,
                const Map& values) {
    MetricFamily& added = family(name, help, type);
    for (const auto& [key, value] : values) {
      ClientMetric metric;
      metric.label = {{label, std::string(key)}};
      (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) =
          static_cast<double>(value);
      added.metric.push_back(std::move(metric));
    }
  }

  void labelled(MetricType type, const char* name, const char* help,
                const std::map<Labels, double>& values) {
    MetricFamily& added = family(name, help, type);
    for (const auto& [labels, value] : values) {
      ClientMetric metric;
      for (const auto& [label, text] : labels) metric.label.push_back({label, text});
      (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
      added.metric.push_back(std::move(metric));
    }
  }

  template <std::size_t kSize>
  void histogram(const char* name, const char* help, const board::Histogram<kSize>& values) {
    family(name, help, MetricType::Histogram).metric.push_back(to_metric(values));
  }

  template <std::size_t kSize>
  void labelled(const char* name, const char* help, const char* label,
                const std::map<std::string, board::Histogram<kSize>>& values) {
    MetricFamily& added = family(name, help, MetricType::Histogram);
    for (const auto& [key, histogram] : values) {
      added.metric.push_back(to_metric(histogram));
      added.metric.back().label = {{label, key}};
    }
  }

  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  template <std::size_t kSize>
  static ClientMetric to_metric(const board::Histogram<kSize>& values) {
    ClientMetric metric;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i <= kSize; ++i) {
      sum += values.counts[i];
      metric.histogram.bucket.push_back(
          {sum, i == kSize ? std::numeric_limits<double>::infinity() : values.bounds[i]});
    }
    metric.histogram.sample_count = sum;
    metric.histogram.sample_sum = values.sum;
    return metric;
  }

  MetricFamily& family(const char* name, const char* help, MetricType type) {
    return families_.emplace_back(MetricFamily{name, help, type, {}});
  }

  std::vector<MetricFamily> families_;
};

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
  std::map<std::string, double> slices, seconds, interrupts;
  for (const auto& [number, total] : totals) {
    const std::string cpu = std::to_string(number);
    slices[cpu] = static_cast<double>(total.slices);
    seconds[cpu] = static_cast<double>(total.nanoseconds) / kNanoseconds;
    interrupts[cpu] = static_cast<double>(total.interrupts);
  }
  page.labelled(MetricType::Counter, "kata_affinity_vcpu_interruptions_total",
                "How often the CPU of a dedicated vCPU was given to something else.", "cpu",
                slices);
  page.labelled(MetricType::Counter, "kata_affinity_vcpu_interruption_seconds_total",
                "Time that something else ran on the CPU of a dedicated vCPU.", "cpu", seconds);
  page.labelled(MetricType::Counter, "kata_affinity_vcpu_device_interrupts_total",
                "Interrupts of the host's devices on the CPU of a dedicated vCPU.", "cpu",
                interrupts);
}

/// 1 for each source that is connected, 0 for each that should be.
std::map<std::string_view, double> sources_up(const board::Board& board) {
  std::map<std::string_view, double> up;
  for (const auto& [source, view] : board.sources()) {
    up[policy::ledger::source_name(source)] = view.up ? 1 : 0;
  }
  return up;
}

/// Everyone who owns contested CPUs, and how many; claims on CPUs that no container holds are not.
std::map<Labels, double> contested_by_container(
    const std::vector<policy::ledger::Contest>& contests) {
  std::map<Labels, double> cpus;
  for (const policy::ledger::Contest& contest : contests) {
    for (const policy::ledger::Contender& contender : contest.contenders) {
      if (contender.is_claim) continue;
      cpus[{{"pod", contender.pod}, {"container", contender.container}}] += contest.cpus.size();
    }
  }
  return cpus;
}

void add_gauges(Page& page, const line::Node& node) {
  const Totals totals = add_up(node);
  const policy::ledger::Ledger& ledger = node.ledger();
  page.gauge("kata_affinity_sandboxes", "VM sandboxes.",
             static_cast<double>(node.sandbox_ids().size()));
  page.gauge("kata_affinity_pods", "Pods of all runtimes.",
             static_cast<double>(ledger.pods().size()));
  page.labelled(MetricType::Gauge, "kata_affinity_threads", "Threads of sandboxes, by role.",
                "role", totals.threads);
  page.gauge("kata_affinity_drifted_threads", "Threads not on their planned CPUs.", totals.drifted);
  page.gauge("kata_affinity_unmanaged_threads", "Threads that cannot be placed and are left alone.",
             totals.unmanaged);
  page.gauge("kata_affinity_containers_isolated",
             "Exclusive containers of VM sandboxes with their CPUs to themselves.",
             totals.isolated);
  page.labelled(MetricType::Gauge, "kata_affinity_containers_not_isolated",
                "Exclusive containers without their CPUs to themselves, by reason.", "reason",
                totals.not_isolated);
  page.gauge("kata_affinity_interrupts", "Interrupts of passed-through devices.",
             totals.interrupts);
  page.gauge("kata_affinity_drifted_interrupts", "Interrupts not on their planned CPUs.",
             totals.drifted_interrupts);
  page.gauge("kata_affinity_unmanaged_interrupts",
             "Interrupts that cannot be moved and are left alone.", totals.unmanaged_interrupts);
  page.gauge("kata_affinity_released_sandboxes", "Sandboxes released by an operator.",
             totals.released);
  page.gauge("kata_affinity_sandboxes_unseen",
             "Sandboxes that cannot be read completely; their last known state is kept.",
             totals.unseen);
  page.labelled(MetricType::Gauge, "kata_affinity_resource_classes",
                "Resource classes that containers ask for: granted, or why not.", "state",
                totals.classes);
  page.gauge("kata_affinity_resource_class_values_unset",
             "Nice values and block I/O weights that are not as a resource class wants them.",
             totals.unset_classes);
  page.labelled(MetricType::Gauge, "kata_affinity_guests",
                "Sandboxes, by state of the guest agent.", "state", totals.guests);
  page.labelled(MetricType::Gauge, "kata_affinity_memory_bytes", "Memory of VMs, by NUMA node.",
                "node", totals.memory);
  page.gauge("kata_affinity_misplaced_memory_bytes",
             "Memory of VMs on other NUMA nodes than planned.", totals.misplaced);
  page.labelled(MetricType::Gauge, "kata_affinity_plan_warnings",
                "Warnings of the plans in force, by code.", "code", totals.warnings);
  page.labelled(MetricType::Gauge, "kata_affinity_source_up",
                "Whether each event source is connected (1) or not (0).", "source",
                sources_up(node.board));
  page.gauge("kata_affinity_start_waiting",
             "Whether widening of masks is suspended after a start of the daemon (1) or not (0).",
             node.gate().may_widen() ? 0 : 1);
  page.gauge("kata_affinity_state_lost", "State files of an earlier daemon that cannot be read.",
             static_cast<double>(node.gate().lost().size()));
  page.gauge("kata_affinity_state_unsaved", "Sandboxes whose state cannot be written.",
             static_cast<double>(node.registry.unsaved().size()));
  page.gauge("kata_affinity_exclusive_cpus", "CPUs owned by exclusive containers.",
             ledger.exclusive().size());
  page.gauge("kata_affinity_contested_cpus", "CPUs assigned exclusively more than once.",
             cpus_of(node.registry.contests()).size());
  page.labelled(MetricType::Gauge, "kata_affinity_contested_container_cpus",
                "CPUs assigned exclusively to this container and to others.",
                contested_by_container(node.registry.contests()));
  page.gauge("kata_affinity_claims_refused",
             "Containers whose environment names claims on CPUs that are not theirs.",
             static_cast<double>(node.registry.refused().size()));
  page.gauge("kata_affinity_shared_pool_cpus", "CPUs in the shared pool.",
             ledger.shared_pool(node.topology.online()).size());
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
