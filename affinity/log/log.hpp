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

namespace ka::log {

enum class Level { kError, kWarning, kInfo, kDebug };

/// "error", "warning", "info", "debug".
std::optional<Level> parse_level(std::string_view name);

using Field = std::pair<std::string_view, std::string>;

class Log {
 public:
  /// Writes to standard error.
  explicit Log(Level level);
  /// Appends lines to `sink`, which must outlive the Log: for tests.
  Log(Level level, std::string& sink);

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

  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace ka::log
