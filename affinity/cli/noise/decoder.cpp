// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/decoder.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace ka::cli::noise {

/// What the tracepoint of a row says.
enum class Meaning { kSwitch, kBegin, kEnd };

struct Tracepoint {
  std::string_view name;  ///< "sched/sched_switch"
  Meaning meaning = Meaning::kSwitch;
  CauseKind kind = CauseKind::kTask;
  std::string_view id_field = {};  ///< empty: `id` is the cause's
  int id = 0;
  std::string_view title = {};  ///< of the cause, where no field names it
  bool is_required = false;     ///< false: some kernels or machines do not have it
};

namespace {

using enum Meaning;
using enum CauseKind;

/// include/trace/events/{sched,irq}.h; arch/x86/include/asm/trace/irq_vectors.h. The end of
/// irq_work cannot be recorded: its own record would raise another one.
constexpr std::array kTracepoints{
    Tracepoint{"sched/sched_switch", kSwitch, kTask, {}, 0, {}, true},
    Tracepoint{"irq/irq_handler_entry", kBegin, kInterrupt, "irq", 0, {}, true},
    Tracepoint{"irq/irq_handler_exit", kEnd, kInterrupt, "irq", 0, {}, true},
    Tracepoint{"irq/softirq_entry", kBegin, kSoftirq, "vec", 0, {}, true},
    Tracepoint{"irq/softirq_exit", kEnd, kSoftirq, "vec", 0, {}, true},
    Tracepoint{"irq_vectors/local_timer_entry", kBegin, kVector, {}, 0, "timer of the CPU"},
    Tracepoint{"irq_vectors/local_timer_exit", kEnd, kVector, {}, 0},
    Tracepoint{
        "irq_vectors/reschedule_entry", kBegin, kVector, {}, 1, "rescheduling by another CPU"},
    Tracepoint{"irq_vectors/reschedule_exit", kEnd, kVector, {}, 1},
    Tracepoint{"irq_vectors/call_function_entry", kBegin, kVector, {}, 2, "call by another CPU"},
    Tracepoint{"irq_vectors/call_function_exit", kEnd, kVector, {}, 2},
    Tracepoint{
        "irq_vectors/call_function_single_entry", kBegin, kVector, {}, 2, "call by another CPU"},
    Tracepoint{"irq_vectors/call_function_single_exit", kEnd, kVector, {}, 2},
    Tracepoint{"irq_vectors/thermal_apic_entry", kBegin, kVector, {}, 3, "thermal sensor"},
    Tracepoint{"irq_vectors/thermal_apic_exit", kEnd, kVector, {}, 3},
};

/// include/linux/interrupt.h.
constexpr std::array kSoftirqs{"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
                               "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};

std::string name_of(const Tracepoint& tracepoint, int id, const TraceFormat& format,
                    Record record) {
  if (tracepoint.kind == kInterrupt) return format.text(record, "name");
  if (tracepoint.kind != kSoftirq) return std::string(tracepoint.title);
  const bool is_known = id >= 0 && std::cmp_less(id, kSoftirqs.size());
  return is_known ? kSoftirqs.at(static_cast<std::size_t>(id)) : "softirq";
}

std::optional<Switch> read_switch(const TraceFormat& format, Record record) {
  const auto from = format.number(record, "prev_pid"), to = format.number(record, "next_pid");
  if (!from || !to) return std::nullopt;
  return Switch{static_cast<int>(*from), static_cast<int>(*to), format.text(record, "prev_comm"),
                format.text(record, "next_comm")};
}

}  // namespace

base::Result<Decoder> Decoder::read(const std::filesystem::path& tracefs) {
  Decoder decoder;
  for (const Tracepoint& tracepoint : kTracepoints) {
    auto format = read_format(tracefs, std::string(tracepoint.name));
    if (format) {
      decoder.add(tracepoint, std::move(*format));
    } else if (tracepoint.is_required) {
      return unexpected(format.error());
    }
  }
  return decoder;
}

void Decoder::add(const Tracepoint& tracepoint, TraceFormat format) {
  const std::uint16_t id = format.id();
  known_.insert_or_assign(id, Known{&tracepoint, std::move(format)});
}

std::vector<std::uint16_t> Decoder::ids() const {
  std::vector<std::uint16_t> ids;
  for (const auto& [id, known] : known_) ids.push_back(id);
  return ids;
}

std::optional<TraceEvent> Decoder::decode(int cpu, Nanoseconds at, int running,
                                          Record record) const {
  const auto found = known_.find(type_of(record).value_or(0));
  if (found == known_.end()) return std::nullopt;
  const auto& [tracepoint, format] = found->second;
  TraceEvent event{cpu, at, running, {}};
  if (tracepoint->meaning == kSwitch) {
    auto change = read_switch(format, record);
    if (!change) return std::nullopt;
    event.body = std::move(*change);
    return event;
  }
  int id = tracepoint->id;
  if (!tracepoint->id_field.empty()) {
    const auto number = format.number(record, std::string(tracepoint->id_field));
    if (!number) return std::nullopt;
    id = static_cast<int>(*number);
  }
  const Cause cause{tracepoint->kind, id};
  if (tracepoint->meaning == kBegin) {
    event.body = Begin{cause, name_of(*tracepoint, id, format, record)};
  } else {
    event.body = End{cause};
  }
  return event;
}

}  // namespace ka::cli::noise
