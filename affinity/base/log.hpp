// The log: one line an event that matters, with fields. To standard error with sd-daemon priority
// prefixes ("<6>..."), which journald stores as priorities.
//
// A Log is passed to those who speak; there is no global one.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spdlog {
class logger;
}

namespace ka::base {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

/// "error", "warning", "info", "debug".
std::optional<LogLevel> parse_log_level(std::string_view name);

using LogField = std::pair<std::string_view, std::string>;

class Log {
 public:
  /// Writes to standard error.
  explicit Log(LogLevel level);
  /// Appends lines to `sink`, which must outlive the Log: for tests.
  Log(LogLevel level, std::string& sink);

  void set_level(LogLevel level);

  void error(std::string_view text, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::kError, text, fields);
  }
  void warning(std::string_view text, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::kWarning, text, fields);
  }
  void info(std::string_view text, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::kInfo, text, fields);
  }
  void debug(std::string_view text, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::kDebug, text, fields);
  }

 private:
  void write(LogLevel level, std::string_view text, std::initializer_list<LogField> fields) const;

  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace ka::base
