// SPDX-License-Identifier: Apache-2.0
#include "vmm/qmp/answers.hpp"

#include <algorithm>
#include <boost/json/value.hpp>
#include <set>
#include <utility>

#include "base/json/lookup.hpp"
#include "base/text.hpp"

namespace ka::qmp {
namespace {

namespace json = boost::json;

constexpr int kMaxTid = 4 * 1024 * 1024;  // PID_MAX_LIMIT
constexpr std::size_t kMaxIothreads = 4096;

base::Error wrong(std::string_view command) {
  return {base::ErrorCode::kInvalid, "QMP: unexpected response to " + std::string(command), 0};
}

/// The number of a member, within [0, limit).
std::optional<int> number_of(const json::value& object, std::string_view name, int limit) {
  const std::int64_t number = base::number_in(base::member(object, name), -1);
  if (number < 0 || number >= limit) return std::nullopt;
  return static_cast<int>(number);
}

std::optional<std::string> given_text(const json::value& object, std::string_view name) {
  const json::value& text = base::member(object, name);
  return text.is_string() ? std::optional(base::printable(base::text_in(text))) : std::nullopt;
}

int place_number(const json::value& props, std::string_view name) {
  return number_of(props, name, policy::kMaxIds).value_or(-1);
}

/// The place in "props"; nothing without a core.
std::optional<Place> read_place(const json::value& object) {
  const json::value& props = base::member(object, "props");
  const int module = place_number(props, "module-id");
  Place place{.socket = place_number(props, "socket-id"),
              .die = place_number(props, "die-id"),
              .cluster = module >= 0 ? module : place_number(props, "cluster-id"),
              .core = place_number(props, "core-id"),
              .thread = place_number(props, "thread-id"),
              .node = place_number(props, "node-id")};
  if (place.core < 0) return std::nullopt;
  return place;
}

std::optional<Cpu> read_cpu(const json::value& object) {
  const auto index = number_of(object, "cpu-index", policy::kMaxIds);
  const auto tid = number_of(object, "thread-id", kMaxTid + 1);
  auto path = given_text(object, "qom-path");
  if (!index || !tid || *tid == 0 || !path) return std::nullopt;
  return Cpu{
      .index = *index, .tid = *tid, .qom_path = std::move(*path), .place = read_place(object)};
}

std::optional<Slot> read_slot(const json::value& object) {
  if (base::find_at(object, "/props") == nullptr) return std::nullopt;
  return Slot{.place = read_place(object).value_or(Place{}),
              .qom_path = given_text(object, "qom-path").value_or("")};
}

std::optional<vmm::MonitorFacts::Iothread> read_iothread(const json::value& object) {
  const auto tid = number_of(object, "thread-id", kMaxTid + 1);
  auto id = given_text(object, "id");
  if (!tid || !id || id->empty()) return std::nullopt;
  return vmm::MonitorFacts::Iothread{.id = std::move(*id), .tid = *tid};
}

template <typename T, typename Read>
base::Result<std::vector<T>> read_all(const json::value& answer, std::string_view command,
                                      std::size_t limit, Read read) {
  const json::array* array = answer.if_array();
  if (array == nullptr || array->size() > limit) return unexpected(wrong(command));
  std::vector<T> all;
  for (const json::value& element : *array) {
    auto one = read(element);
    if (!one) return unexpected(wrong(command));
    all.push_back(std::move(*one));
  }
  return all;
}

/// What makes two vCPUs siblings.
Place core_of(Place place) {
  place.thread = -1;
  place.node = -1;
  return place;
}

std::map<Place, int> number_cores(const std::vector<Cpu>& cpus, const std::vector<Slot>& slots) {
  std::map<Place, int> cores;
  for (const Slot& slot : slots) {
    if (slot.place.core >= 0) cores[core_of(slot.place)] = 0;
  }
  for (const Cpu& cpu : cpus) {
    if (cpu.place) cores[core_of(*cpu.place)] = 0;
  }
  int number = 0;
  for (auto& [place, value] : cores) value = number++;
  return cores;
}

std::optional<Place> place_of(const Cpu& cpu, const std::vector<Slot>& slots) {
  if (cpu.place) return cpu.place;
  const auto slot = std::ranges::find(slots, cpu.qom_path, &Slot::qom_path);
  if (slot == slots.end() || slot->place.core < 0) return std::nullopt;
  return slot->place;
}

}  // namespace

base::Result<std::vector<Cpu>> read_cpus(const json::value& answer) {
  return read_all<Cpu>(answer, "query-cpus-fast", policy::kMaxIds, read_cpu);
}

base::Result<std::vector<Slot>> read_slots(const json::value& answer) {
  return read_all<Slot>(answer, "query-hotpluggable-cpus", policy::kMaxIds, read_slot);
}

base::Result<std::vector<vmm::MonitorFacts::Iothread>> read_iothreads(const json::value& answer) {
  return read_all<vmm::MonitorFacts::Iothread>(answer, "query-iothreads", kMaxIothreads,
                                               read_iothread);
}

base::Result<int> read_apic_id(const json::value& answer) {
  // A vCPU that has none yet reports UINT32_MAX (target/i386/cpu.h, UNASSIGNED_APIC_ID).
  constexpr std::int64_t kLimit = 0x7fffffff;
  if (!answer.is_int64() || answer.get_int64() < 0 || answer.get_int64() >= kLimit) {
    return unexpected(wrong("qom-get"));
  }
  return static_cast<int>(answer.get_int64());
}

vmm::MonitorFacts compose(const std::vector<Cpu>& cpus, const std::vector<Slot>& slots,
                          const std::map<std::string, int>& apic_ids,
                          std::vector<vmm::MonitorFacts::Iothread> iothreads) {
  vmm::MonitorFacts facts{.source = "qmp", .vcpus = {}, .iothreads = std::move(iothreads)};
  const std::map<Place, int> cores = number_cores(cpus, slots);
  for (const Cpu& cpu : cpus) {
    policy::VcpuFacts vcpu{.index = cpu.index, .apic_id = {}, .core = cpu.index};
    if (const auto id = apic_ids.find(cpu.qom_path); id != apic_ids.end()) {
      vcpu.apic_id = id->second;
    }
    if (const auto place = place_of(cpu, slots)) {
      vcpu.socket = std::max(place->socket, 0);
      vcpu.core = cores.at(core_of(*place));
      vcpu.thread = std::max(place->thread, 0);
      vcpu.numa = std::max(place->node, 0);
    }
    facts.vcpus.push_back({.facts = vcpu, .tid = cpu.tid});
  }
  std::ranges::sort(facts.vcpus, {}, [](const auto& vcpu) { return vcpu.facts.index; });
  std::ranges::sort(facts.iothreads, {}, &vmm::MonitorFacts::Iothread::id);
  return facts;
}

}  // namespace ka::qmp
