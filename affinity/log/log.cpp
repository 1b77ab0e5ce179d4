#include "affinity/log/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <mutex>

namespace ka::log {
namespace {

struct Known {
  Level level;
  std::string_view name;
  spdlog::level::level_enum spdlog;
  char priority;  ///< syslog(3)
};

constexpr std::array<Known, 4> kLevels{{
    {Level::kError, "error", spdlog::level::err, '3'},
    {Level::kWarning, "warning", spdlog::level::warn, '4'},
    {Level::kInfo, "info", spdlog::level::info, '6'},
    {Level::kDebug, "debug", spdlog::level::debug, '7'},
}};

const Known& describe(Level level) {
  for (const Known& known : kLevels) {
    if (known.level == level) return known;
  }
  return kLevels.front();
}

class StringSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit StringSink(std::string& text) : text_(text) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    text_.append(message.payload.data(), message.payload.size()) += '\n';
  }
  void flush_() override {}

  std::string& text_;  ///< owned by the test
};

std::shared_ptr<spdlog::logger> make_logger(Level level, spdlog::sink_ptr sink) {
  auto logger = std::make_shared<spdlog::logger>("kata-affinity", std::move(sink));
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
  logger->set_level(describe(level).spdlog);
  logger->flush_on(spdlog::level::debug);
  return logger;
}

bool needs_quotes(std::string_view value) {
  return value.empty() || value.find_first_of(" =\"\n\t") != std::string_view::npos;
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

}  // namespace

std::optional<Level> parse_level(std::string_view name) {
  for (const Known& known : kLevels) {
    if (known.name == name) return known.level;
  }
  return std::nullopt;
}

Log::Log(Level level)
    : logger_(make_logger(level, std::make_shared<spdlog::sinks::stderr_sink_st>())) {}

Log::Log(Level level, std::string& sink)
    : logger_(make_logger(level, std::make_shared<StringSink>(sink))) {}

void Log::set_level(Level level) { logger_->set_level(describe(level).spdlog); }

void Log::write(Level level, std::string_view text, std::initializer_list<Field> fields) const {
  const Known& known = describe(level);
  if (!logger_->should_log(known.spdlog)) return;
  std::string line = {'<', known.priority, '>'};
  line += text;
  for (const auto& [key, value] : fields) {
    line += ' ';
    line += key;
    line += '=';
    append_value(line, value);
  }
  logger_->log(known.spdlog, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace ka::log
