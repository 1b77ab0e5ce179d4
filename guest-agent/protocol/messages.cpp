// SPDX-License-Identifier: Apache-2.0
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
using ttrpc::Writer;

using namespace policy;

// --- reading: each returns whether the field is valid

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

/// Text ends up in terminals and in logs.
bool is_plain(char c) { return c >= ' ' && c <= '~'; }

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
    default:
      return true;
  }
}

// --- writing

std::uint64_t number_of(int value) { return static_cast<std::uint64_t>(std::max(value, 0)); }

/// What the reader would refuse in a name is shown as a question mark, and a long one is cut.
std::string plain(std::string_view text, std::size_t longest) {
  std::string out(text.substr(0, longest));
  std::ranges::replace_if(out, [](char c) { return !is_plain(c); }, '?');
  return out;
}

std::string encode(const GuestVcpu& vcpu) {
  Writer out;
  out.number(1, vcpu.hardware_id);
  out.number(2, number_of(vcpu.index));
  out.text(3, format_list(vcpu.cpus));
  out.text(4, format_list(vcpu.nodes));
  out.number(5, vcpu.dedicated ? 1 : 0);
  out.number(6, vcpu.common ? 1 : 0);
  return out.release();
}

std::string encode(const GuestContainer& container) {
  Writer out;
  out.text(1, container.id);
  out.text(2, plain(container.name, kMaxName * 4));
  for (const std::uint64_t id : container.hardware_ids) out.present(3, id);
  out.number(4, container.dedicated ? 1 : 0);
  out.number(5, container.lift_quota ? 1 : 0);
  return out.release();
}

std::string encode(const GuestCpu& cpu) {
  Writer out;
  out.number(1, number_of(cpu.number));
  if (cpu.hardware_id) out.present(2, *cpu.hardware_id);
  out.number(3, number_of(cpu.socket));
  out.number(4, number_of(cpu.core));
  out.number(5, number_of(cpu.thread));
  out.number(6, number_of(cpu.node));
  out.number(7, cpu.online ? 1 : 0);
  return out.release();
}

std::string encode(const GuestProcess& process) {
  Writer out;
  out.number(1, number_of(process.pid));
  out.text(2, plain(process.name, kMaxName));
  out.number(3, number_of(process.threads));
  out.text(4, format_list(process.cpus));
  return out.release();
}

std::string encode(const GuestContainerState& state) {
  Writer out;
  out.text(1, state.id);
  out.text(2, format_list(state.wanted));
  out.text(3, format_list(state.actual));
  out.number(4, static_cast<std::uint64_t>(state.method));
  out.number(5, static_cast<std::uint64_t>(state.problem));
  out.number(6, number_of(state.threads));
  out.number(7, number_of(state.outside));
  for (const GuestProcess& process : state.processes) out.message(8, encode(process));
  out.number(9, state.quota_lifted ? 1 : 0);
  return out.release();
}

}  // namespace

std::optional<std::uint32_t> common_version(const Hello& ours, const Hello& theirs) {
  const std::uint32_t newest = std::min(ours.version, theirs.version);
  if (newest < std::max(ours.oldest, theirs.oldest)) return std::nullopt;
  return newest;
}

std::string encode(const Hello& hello) {
  Writer out;
  out.number(1, hello.version);
  out.number(2, hello.oldest);
  out.text(3, plain(hello.program, kMaxName));
  return out.release();
}

std::string encode(const GuestWishes& wishes) {
  Writer out;
  for (const GuestVcpu& vcpu : wishes.vcpus) out.message(1, encode(vcpu));
  for (const GuestContainer& container : wishes.containers) out.message(2, encode(container));
  out.number(3, wishes.move_interrupts ? 1 : 0);
  out.number(4, wishes.release ? 1 : 0);
  return out.release();
}

std::string encode(const GuestReport& report) {
  Writer out;
  out.number(1, report.generation);
  for (const GuestCpu& cpu : report.cpus) out.message(2, encode(cpu));
  out.text(3, format_list(report.common));
  for (const GuestContainerState& state : report.containers) out.message(4, encode(state));
  out.number(5, number_of(report.interrupts_moved));
  out.number(6, number_of(report.interrupts_stuck));
  out.number(7, number_of(report.kernel_threads_moved));
  out.number(8, number_of(report.kernel_threads_stuck));
  out.number(9, report.services_moved ? 1 : 0);
  return out.release();
}

std::string encode(const ContainerNews& news) {
  Writer writer;
  writer.text(1, news.id);
  writer.number(2, news.stopped ? 1 : 0);
  return writer.release();
}

std::string encode_watch(std::uint64_t generation) {
  Writer out;
  out.number(1, generation);
  return out.release();
}

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

std::optional<GuestWishes> decode_wishes(std::string_view bytes) {
  GuestWishes wishes;
  wishes.move_interrupts = false;
  const bool good = read_fields(bytes, [&wishes](const Field& field) {
    switch (field.number) {
      case 1:
        return append(field, wishes.vcpus, kMaxCpus, read_vcpu);
      case 2:
        return append(field, wishes.containers, kMaxContainers, read_container);
      case 3:
        return read(field, wishes.move_interrupts);
      case 4:
        return read(field, wishes.release);
      default:
        return true;
    }
  });
  if (!good || !is_strictly_sorted(wishes.vcpus, &GuestVcpu::hardware_id) ||
      !is_strictly_sorted(wishes.containers, &GuestContainer::id)) {
    return std::nullopt;
  }
  return wishes;
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
