// SPDX-License-Identifier: Apache-2.0
// Messages as they are read: whatever a peer may send.
#include "guest-agent/protocol/messages.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/ttrpc/wire.hpp"

namespace ka::guest {
namespace {

using ttrpc::Field;
using ttrpc::PackedReader;
using ttrpc::read_fields;

using namespace policy;

// Each returns whether the field is valid.

constexpr std::uint64_t kMaxNumber = std::numeric_limits<std::int32_t>::max();

bool read(const Field& field, int& into, std::uint64_t most = kMaxNumber) {
  if (field.is_bytes || field.value > most) return false;
  into = static_cast<int>(field.value);
  return true;
}

bool read(const Field& field, std::uint32_t& into) {
  if (field.is_bytes || field.value > std::numeric_limits<std::uint32_t>::max()) return false;
  into = static_cast<std::uint32_t>(field.value);
  return true;
}

bool read(const Field& field, std::uint64_t& into) {
  if (field.is_bytes) return false;
  into = field.value;
  return true;
}

bool read(const Field& field, bool& into) {
  if (field.is_bytes || field.value > 1) return false;
  into = field.value == 1;
  return true;
}

bool read(const Field& field, std::string& into, std::size_t longest) {
  if (!field.is_bytes || field.bytes.size() > longest) return false;
  if (!std::ranges::all_of(field.bytes, is_plain)) return false;
  into = field.bytes;
  return true;
}

template <typename Tag>
bool read(const Field& field, IdSet<Tag>& into) {
  if (!field.is_bytes || field.bytes.size() > kMaxList) return false;
  auto parsed = parse_list<Tag>(field.bytes);
  if (!parsed) return false;
  into = std::move(*parsed);
  return true;
}

template <typename Enum>
bool read_enum(const Field& field, Enum& into, Enum last) {
  int value = 0;
  if (!read(field, value, static_cast<std::uint64_t>(last))) return false;
  into = static_cast<Enum>(value);
  return true;
}

/// One more element of a repeated field.
template <typename T, typename Read>
bool append(const Field& field, std::vector<T>& list, std::size_t most, Read read_one) {
  if (!field.is_bytes || list.size() >= most) return false;
  T element;
  if (!read_one(field.bytes, element)) return false;
  list.push_back(std::move(element));
  return true;
}

/// protobuf's writers pack repeated numbers, its readers take both forms.
bool read_ids(const Field& field, std::vector<std::uint64_t>& ids) {
  if (!field.is_bytes) {
    ids.push_back(field.value);
    return ids.size() <= kMaxCpus;
  }
  PackedReader numbers(field.bytes);
  while (const auto id = numbers.next()) {
    if (ids.size() >= kMaxCpus) return false;
    ids.push_back(*id);
  }
  return numbers.good();
}

bool read_vcpu(std::string_view bytes, GuestVcpu& vcpu) {
  vcpu.common = false;
  return read_fields(bytes, [&vcpu](const Field& field) {
    switch (field.number) {
      case 1:
        return read(field, vcpu.hardware_id);
      case 2:
        return read(field, vcpu.index, kMaxIds - 1);
      case 3:
        return read(field, vcpu.cpus);
      case 4:
        return read(field, vcpu.nodes);
      case 5:
        return read(field, vcpu.dedicated);
      case 6:
        return read(field, vcpu.common);
      default:
        return true;
    }
  });
}

bool read_container(std::string_view bytes, GuestContainer& container) {
  const bool good = read_fields(bytes, [&container](const Field& field) {
    switch (field.number) {
      case 1:
        return read(field, container.id, kMaxId);
      case 2:
        return read(field, container.name, kMaxName * 4);
      case 3:
        return read_ids(field, container.hardware_ids);
      case 4:
        return read(field, container.dedicated);
      case 5:
        return read(field, container.lift_quota);
      default:
        return true;
    }
  });
  return good && !container.id.empty();
}

bool read_cpu(std::string_view bytes, GuestCpu& cpu) {
  return read_fields(bytes, [&cpu](const Field& field) {
    switch (field.number) {
      case 1:
        return read(field, cpu.number, kMaxIds - 1);
      case 2:
        return read(field, cpu.hardware_id.emplace());
      case 3:
        return read(field, cpu.socket);
      case 4:
        return read(field, cpu.core);
      case 5:
        return read(field, cpu.thread);
      case 6:
        return read(field, cpu.node);
      case 7:
        return read(field, cpu.online);
      default:
        return true;
    }
  });
}

bool read_process(std::string_view bytes, GuestProcess& process) {
  return read_fields(bytes, [&process](const Field& field) {
    switch (field.number) {
      case 1:
        return read(field, process.pid);
      case 2:
        return read(field, process.name, kMaxName);
      case 3:
        return read(field, process.threads);
      case 4:
        return read(field, process.cpus);
      default:
        return true;
    }
  });
}

bool read_state(std::string_view bytes, GuestContainerState& state) {
  const bool good = read_fields(bytes, [&state](const Field& field) {
    switch (field.number) {
      case 1:
        return read(field, state.id, kMaxId);
      case 2:
        return read(field, state.wanted);
      case 3:
        return read(field, state.actual);
      case 4:
        return read_enum(field, state.method, GuestMethod::kAffinity);
      case 5:
        return read_enum(field, state.problem, GuestProblem::kThreadsOutside);
      case 6:
        return read(field, state.threads);
      case 7:
        return read(field, state.outside);
      case 8:
        return append(field, state.processes, kMaxProcesses, read_process);
      case 9:
        return read(field, state.quota_lifted);
      default:
        return true;
    }
  });
  return good && !state.id.empty();
}

/// Ascending, and no two alike.
template <typename List, typename Member>
bool is_strictly_sorted(const List& list, Member member) {
  return std::ranges::adjacent_find(list, std::ranges::greater_equal{}, member) == list.end();
}

bool read_report_field(const Field& field, GuestReport& report) {
  switch (field.number) {
    case 1:
      return read(field, report.generation);
    case 2:
      return append(field, report.cpus, kMaxCpus, read_cpu);
    case 3:
      return read(field, report.common);
    case 4:
      return append(field, report.containers, kMaxContainers, read_state);
    case 5:
      return read(field, report.interrupts_moved);
    case 6:
      return read(field, report.interrupts_stuck);
    case 7:
      return read(field, report.kernel_threads_moved);
    case 8:
      return read(field, report.kernel_threads_stuck);
    case 9:
      return read(field, report.services_moved);
    case 10:
      return read_enum(field, report.idle, GuestIdle::kRefused);
    default:
      return true;
  }
}

}  // namespace

std::optional<Hello> decode_hello(std::string_view bytes) {
  Hello hello{.version = 0, .oldest = 0, .program = {}};
  const bool good = read_fields(bytes, [&hello](const Field& field) {
    switch (field.number) {
      case 1:
        return read(field, hello.version);
      case 2:
        return read(field, hello.oldest);
      case 3:
        return read(field, hello.program, kMaxName);
      default:
        return true;
    }
  });
  if (!good || hello.version == 0 || hello.oldest > hello.version) return std::nullopt;
  return hello;
}

std::optional<GuestSpec> decode_spec(std::string_view bytes) {
  GuestSpec spec;
  spec.move_interrupts = false;
  const bool good = read_fields(bytes, [&spec](const Field& field) {
    switch (field.number) {
      case 1:
        return append(field, spec.vcpus, kMaxCpus, read_vcpu);
      case 2:
        return append(field, spec.containers, kMaxContainers, read_container);
      case 3:
        return read(field, spec.move_interrupts);
      case 4:
        return read(field, spec.release);
      case 5:
        return read(field, spec.halt_poll);
      default:
        return true;
    }
  });
  if (!good || !is_strictly_sorted(spec.vcpus, &GuestVcpu::hardware_id) ||
      !is_strictly_sorted(spec.containers, &GuestContainer::id)) {
    return std::nullopt;
  }
  return spec;
}

std::optional<GuestReport> decode_report(std::string_view bytes) {
  GuestReport report;
  const bool good = read_fields(
      bytes, [&report](const Field& field) { return read_report_field(field, report); });
  if (!good || !is_strictly_sorted(report.cpus, &GuestCpu::number) ||
      !is_strictly_sorted(report.containers, &GuestContainerState::id)) {
    return std::nullopt;
  }
  return report;
}

std::optional<std::uint64_t> decode_watch(std::string_view bytes) {
  std::uint64_t generation = 0;
  const bool good = read_fields(bytes, [&generation](const Field& field) {
    return field.number != 1 || read(field, generation);
  });
  if (!good) return std::nullopt;
  return generation;
}

std::optional<ContainerNews> decode_container(std::string_view bytes) {
  ContainerNews news;
  const bool good = read_fields(bytes, [&news](const Field& field) {
    if (field.number == 1) return read(field, news.id, kMaxId);
    return field.number != 2 || read(field, news.stopped);
  });
  if (!good || news.id.empty()) return std::nullopt;
  return news;
}

}  // namespace ka::guest
