// SPDX-License-Identifier: Apache-2.0
#include "base/log/log.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/log/output.hpp"

namespace ka::log {
namespace {

struct Known {
  Level level;
  std::string_view name;
  char priority;  ///< syslog(3)
};

constexpr std::array<Known, 4> kLevels{{
    {Level::kError, "error", '3'},
    {Level::kWarning, "warning", '4'},
    {Level::kInfo, "info", '6'},
    {Level::kDebug, "debug", '7'},
}};

constexpr int kAlike = 20, kTroubles = 100;
constexpr std::chrono::seconds kAlikeEvery(60), kTroublesEvery(6);

bool needs_quotes(std::string_view value) {
  return value.find_first_of(" =\"\n\t") != std::string_view::npos;
}

void append_value(std::string& line, std::string_view value) {
  if (!needs_quotes(value)) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') line += '\\';
    line += c == '\n' ? ' ' : c;
  }
  line += '"';
}

std::string_view value_of(Fields fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &Field::first);
  return found == fields.end() ? std::string_view() : found->second;
}

Sink standard_sink() {
  return [output = std::make_shared<Output>(STDERR_FILENO, std::getenv("JOURNAL_STREAM"))](
             Level level, std::string_view text, Fields fields) {
    output->write(level, text, fields);
  };
}

}  // namespace

std::optional<Level> parse_level(std::string_view name) {
  for (const Known& known : kLevels) {
    if (known.name == name) return known.level;
  }
  return std::nullopt;
}

char priority_of(Level level) { return std::ranges::find(kLevels, level, &Known::level)->priority; }

std::string to_line(std::string_view text, Fields fields) {
  std::string line(text);
  for (const auto& [key, value] : fields) {
    if (value.empty()) continue;
    line.append(" ").append(key).append("=");
    append_value(line, value);
  }
  return line;
}

std::string to_prefixed_line(Level level, std::string_view text, Fields fields) {
  return std::string{'<', priority_of(level), '>'} + to_line(text, fields) + '\n';
}

Log::Log(Level level, const base::Clock& clock) : Log(level, standard_sink(), clock) {}

Log::Log(Level level, Sink sink, const base::Clock& clock)
    : level_(level),
      sink_(std::move(sink)),
      clock_(clock),
      alike_(kAlike, kAlikeEvery),
      troubles_(kTroubles, kTroublesEvery) {}

void Log::set_level(Level level) {
  const std::lock_guard lock(mutex_);
  level_ = level;
}

std::optional<std::uint64_t> Log::admit(Level level, std::string_view text, Fields fields) const {
  if (level == Level::kDebug) return 0;
  const std::string_view kind = value_of(fields, "kind");
  const std::string key(kind.empty() ? text : kind);
  const auto now = clock_.now();
  const auto of_sandbox = alike_.admit(key + '\n' + std::string(value_of(fields, "sandbox")), now);
  if (!of_sandbox || level == Level::kInfo) return of_sandbox;
  const auto of_kind = troubles_.admit(key, now);
  return of_kind ? std::optional(*of_sandbox + *of_kind) : std::nullopt;
}

void Log::write(Level level, std::string_view text, std::initializer_list<Field> fields) const {
  const std::lock_guard lock(mutex_);
  if (level > level_) return;
  const auto left_out = admit(level, text, fields);
  if (!left_out) return;
  if (*left_out == 0) return sink_(level, text, fields);
  std::vector<Field> more(fields);
  more.emplace_back("left_out", std::to_string(*left_out));
  sink_(level, text, more);
}

}  // namespace ka::log
