// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/run_counters.hpp"

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/split.hpp"

namespace ka::host {
namespace {

using base::ErrorCode;
using Counters = std::map<int, CpuCounters>;

/// Of either file: 4096 CPUs with as many interrupts each.
constexpr std::size_t kLargest = std::size_t{64} << 20;

/// Of "cpu0 <yields> 0 <calls> <idle> <wakeups> <local> <ran> <waited> <slices>".
constexpr std::size_t kRan = 7, kSlices = 9;

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

/// "cpu4", "CPU4".
std::optional<int> cpu_number(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto cpu = number(name.substr(prefix.size()));
  if (!cpu || *cpu >= policy::kMaxIds) return std::nullopt;
  return static_cast<int>(*cpu);
}

Counters parse_schedstat(std::string_view text) {
  Counters counters;
  for (const std::string_view line : base::split(text, '\n')) {
    const auto fields = base::split(line, ' ');
    if (fields.size() <= kSlices) continue;
    const auto cpu = cpu_number(fields.front(), "cpu");
    const auto ran = number(fields[kRan]), slices = number(fields[kSlices]);
    if (cpu && ran && slices) counters[*cpu] = {*ran, *slices, 0, 0};
  }
  return counters;
}

/// The columns' CPUs, which are those online.
std::vector<int> parse_columns(std::string_view head) {
  std::vector<int> cpus;
  for (const std::string_view name : base::split(head, ' ')) {
    cpus.push_back(cpu_number(name, "CPU").value_or(-1));
  }
  return cpus;
}

/// A device's: the CPU's own (timer, calls from other CPUs) have names in place of numbers.
bool is_of_device(const std::vector<std::string_view>& fields) {
  if (fields.empty() || !fields.front().ends_with(':')) return false;
  return number(fields.front().substr(0, fields.front().size() - 1)).has_value();
}

/// One that goes to a VM: its name is VFIO's (drivers/vfio/pci/vfio_pci_intrs.c).
bool is_passed_through(std::string_view line) {
  return line.find(" vfio-") != std::string_view::npos;
}

void add_interrupts(std::string_view text, Counters& counters) {
  const auto lines = base::split(text, '\n');
  if (lines.empty()) return;
  const auto cpus = parse_columns(lines.front());
  for (const std::string_view line : lines) {
    const auto fields = base::split(line, ' ');
    if (!is_of_device(fields)) continue;
    const auto counter =
        is_passed_through(line) ? &CpuCounters::passed_through : &CpuCounters::interrupts;
    for (std::size_t i = 0; i < cpus.size() && i + 1 < fields.size(); ++i) {
      const auto found = counters.find(cpus[i]);
      if (found != counters.end()) found->second.*counter += number(fields[i + 1]).value_or(0);
    }
  }
}

}  // namespace

std::optional<ThreadCounters> thread_counters(const std::filesystem::path& proc,
                                              const policy::ThreadKey& key) {
  const auto text = base::read_file(proc / std::to_string(key.pid) / "task" /
                                    std::to_string(key.tid) / "schedstat");
  if (!text) return std::nullopt;
  const auto fields = base::split(std::string_view(*text).substr(0, text->find('\n')), ' ');
  if (fields.size() != 3) return std::nullopt;
  const auto ran = number(fields[0]), waited = number(fields[1]), slices = number(fields[2]);
  if (!ran || !waited || !slices) return std::nullopt;
  return ThreadCounters{*ran, *waited, *slices};
}

base::Result<Counters> cpu_counters(const std::filesystem::path& proc) {
  const auto text = base::read_file(proc / "schedstat", kLargest);
  if (!text && !is_gone(text)) return unexpected(text.error());
  Counters counters = text ? parse_schedstat(*text) : Counters{};
  if (counters.empty()) {
    return base::fail(ErrorCode::kUnavailable,
                      "this kernel does not count what its CPUs run (CONFIG_SCHEDSTATS)");
  }
  if (const auto interrupts = base::read_file(proc / "interrupts", kLargest)) {
    add_interrupts(*interrupts, counters);
  }
  return counters;
}

}  // namespace ka::host
