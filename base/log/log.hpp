// SPDX-License-Identifier: Apache-2.0
// The log: one line an event that matters, with fields. To standard error with sd-daemon priority
// prefixes ("<6>..."), or to journald, field by field, where standard error is journald's.
//
// A Log is passed to its users; there is no global one. A fault that lasts for hours does not
// fill a disk: of similar lines (the same `kind`, or text, and the same `sandbox`) the first
// ones are written, and then one a minute with the number of those left out; of warnings and errors
// that are alike but for their sandbox, so too, at ten a minute. Debug lines are all written.
#pragma once

#include <functional>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/log/limiter.hpp"

namespace ka::log {

enum class Level { kError, kWarning, kInfo, kDebug };

/// "error", "warning", "info", "debug".
std::optional<Level> parse_level(std::string_view name);

/// A name in small letters and its value. A field without a value is left out.
using Field = std::pair<std::string_view, std::string>;
using Fields = std::span<const Field>;

/// Writes one line. Must not wait: the whole program would wait with it.
using Sink = std::function<void(Level level, std::string_view text, Fields fields)>;

class Log {
 public:
  /// Writes to journald or standard error, without waiting (Output). `clock` must outlive it.
  Log(Level level, const base::Clock& clock);
  Log(Level level, Sink sink, const base::Clock& clock);

  void set_level(Level level);

  void error(std::string_view text, std::initializer_list<Field> fields = {}) const {
    write(Level::kError, text, fields);
  }
  void warning(std::string_view text, std::initializer_list<Field> fields = {}) const {
    write(Level::kWarning, text, fields);
  }
  void info(std::string_view text, std::initializer_list<Field> fields = {}) const {
    write(Level::kInfo, text, fields);
  }
  void debug(std::string_view text, std::initializer_list<Field> fields = {}) const {
    write(Level::kDebug, text, fields);
  }

 private:
  void write(Level level, std::string_view text, std::initializer_list<Field> fields) const;
  std::optional<std::uint64_t> admit(Level level, std::string_view text, Fields fields) const;

  mutable std::mutex mutex_;  ///< libvirt's thread logs too
  Level level_;
  Sink sink_;
  const base::Clock& clock_;
  mutable Limiter alike_;     ///< by kind and sandbox
  mutable Limiter troubles_;  ///< by kind
};

/// "text key=value ...", for display.
std::string to_line(std::string_view text, Fields fields);
/// The same for standard error, with its end: "<4>text key=value ...\n".
std::string to_prefixed_line(Level level, std::string_view text, Fields fields);
/// The syslog(3) priority of a level: '3', '4', '6', '7'.
char priority_of(Level level);

}  // namespace ka::log
