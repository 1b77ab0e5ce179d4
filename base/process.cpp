// SPDX-License-Identifier: Apache-2.0
#include "base/process.hpp"

#include <unistd.h>

#include <array>
#include <charconv>

#include "base/boot_offset.hpp"
#include "base/files.hpp"
#include "base/split.hpp"
#include "base/text.hpp"

namespace ka::base {
namespace {

/// The next space-separated field; an empty view at the end.
std::string_view next_field(std::string_view& text) {
  const std::size_t start = text.find_first_not_of(' ');
  if (start == std::string_view::npos) return {};
  text.remove_prefix(start);
  const std::size_t length = std::min(text.find(' '), text.size());
  const std::string_view field = text.substr(0, length);
  text.remove_prefix(length);
  return field;
}

template <typename Number>
bool read_field(std::string_view field, Number& value) {
  const auto [stop, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  return error == std::errc{} && stop == field.data() + field.size();
}

}  // namespace

Result<ThreadStat> parse_thread_stat(std::string_view text) {
  constexpr int kFieldsBetweenPpidAndFlags = 4;    // fields 5..8 of proc(5)
  constexpr int kFieldsBetweenFlagsAndStart = 12;  // fields 10..21
  constexpr std::uint32_t kNoSetAffinity = 0x04000000;
  constexpr std::size_t kLongestName = 64;  // of a workqueue's thread (fs/proc/array.c)
  const auto malformed = fail(ErrorCode::kInvalid, "malformed /proc stat line");
  const std::size_t open = std::min(text.find(" ("), text.size());
  const std::size_t close = text.rfind(") ", open + 2 + kLongestName);
  if (close == std::string_view::npos || close < open) return malformed;
  ThreadStat stat;
  if (!read_field(text.substr(0, open), stat.tid)) return malformed;
  stat.comm = printable(text.substr(open + 2, close - open - 2));
  std::string_view rest = text.substr(close + 2);
  const std::string_view state = next_field(rest);
  if (state.size() != 1 || !read_field(next_field(rest), stat.ppid)) return malformed;
  stat.state = state[0];
  for (int i = 0; i < kFieldsBetweenPpidAndFlags; ++i) next_field(rest);
  std::uint32_t flags = 0;
  if (!read_field(next_field(rest), flags)) return malformed;
  stat.movable = (flags & kNoSetAffinity) == 0;
  for (int i = 0; i < kFieldsBetweenFlagsAndStart; ++i) next_field(rest);
  if (!read_field(next_field(rest), stat.start_time)) return malformed;
  return stat;
}

Result<ThreadStat> thread_stat_of(std::string_view line) {
  auto stat = parse_thread_stat(line);
  if (stat) stat->start_time -= boot_offset_ticks();
  return stat;
}

std::chrono::nanoseconds started_at(std::uint64_t start_time) {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  const std::int64_t ticks = ::sysconf(_SC_CLK_TCK);
  const auto start = static_cast<std::int64_t>(start_time);
  return std::chrono::seconds(start / ticks) +
         std::chrono::nanoseconds(start % ticks * kNanoseconds / ticks);
}

Result<std::vector<int>> ProcFs::list(const std::filesystem::path& path) {
  return list_numbers(path);
}

Result<std::string> ProcFs::boot_id() const {
  auto id = read_file(root_ / "sys/kernel/random/boot_id");
  if (id && id->ends_with('\n')) id->pop_back();
  return id;
}

Result<std::vector<int>> ProcFs::threads(int pid) const {
  return list(root_ / std::to_string(pid) / "task");
}

Result<ThreadStat> ProcFs::stat(int pid, int tid) const {
  const std::string path =
      root_.native() + '/' + std::to_string(pid) + "/task/" + std::to_string(tid) + "/stat";
  std::array<char, 2048> line;
  const auto text = read_record(path, line);
  if (!text) return unexpected(text.error());
  return thread_stat_of(*text);
}

Result<std::vector<std::string>> ProcFs::cmdline(int pid) const {
  auto text = read_file(root_ / std::to_string(pid) / "cmdline");
  if (!text) return unexpected(std::move(text.error()));
  std::vector<std::string> arguments;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    arguments.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return arguments;
}

Result<std::string> ProcFs::cgroup(int pid, std::string_view controller) const {
  auto text = read_file(root_ / std::to_string(pid) / "cgroup");
  if (!text) return unexpected(std::move(text.error()));
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool wanted =
        controller.empty() ? controllers.empty() : has_part(controllers, ',', controller);
    if (!wanted) continue;
    const std::string_view path = line.substr(second + 1);
    if (is_printable(path, kMaxPath)) return std::string(path);
    return fail(ErrorCode::kInvalid, "the cgroup of process " + std::to_string(pid) +
                                         " has a name that cannot be shown: " + printable(path));
  }
  return fail(ErrorCode::kNotFound, "process " + std::to_string(pid) + " has no such cgroup");
}

}  // namespace ka::base
