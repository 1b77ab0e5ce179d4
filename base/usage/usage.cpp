// SPDX-License-Identifier: Apache-2.0
#include "base/usage/usage.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace ka::usage {
namespace {

/// Where descriptions begin: options and commands fit before it, lines into 80 columns.
constexpr std::size_t kColumn = 26;
/// The group of options that only --help-all lists.
constexpr const char* kFurther = "Further options";
constexpr std::string_view kGroupSuffix = " commands";

/// The usage line says which positionals there are, and errors say which options exclude others.
class Formatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional() || option->get_type_size() == 0) return {};
    std::string text = ' ' + value_name(option->get_type_name());
    if (!option->get_default_str().empty()) text += '=' + option->get_default_str();
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    return text + (option->get_required() ? " (required)" : "");
  }

  std::string make_description(const CLI::App* app) const override {
    std::string text = app->get_description();
    if (text.empty()) return text;
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
    return text + (text.ends_with('.') ? "\n" : ".\n");
  }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
           make_subcommands(app, mode) + options_of(*app, mode) + '\n' + app->get_footer() + '\n';
  }

  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override {
    const auto groups = grouped(*app);
    if (groups.size() < 2 || mode == CLI::AppFormatMode::All)
      return CLI::Formatter::make_subcommands(app, CLI::AppFormatMode::Normal);
    std::size_t widest = 0;
    for (const auto& group : groups) widest = std::max(widest, group.name.size());
    std::string text = "\nCommands:\n";
    for (const auto& [name, commands] : groups)
      text += "  " + name + std::string(widest + 2 - name.size(), ' ') + commands + '\n';
    return text;
  }

 private:
  std::string options_of(const CLI::App& app, CLI::AppFormatMode mode) const {
    std::string text;
    for (const std::string& group : app.get_groups()) {
      if (group.empty() || (group == kFurther && mode != CLI::AppFormatMode::All)) continue;
      const auto options = app.get_options([&group](const CLI::Option* option) {
        return option->get_group() == group && option->nonpositional();
      });
      if (!options.empty()) text += make_group(group, false, options);
    }
    return text;
  }

  struct Group {
    std::string name;      ///< without kGroupSuffix
    std::string commands;  ///< "status, map"
  };

  /// Visible commands by group, in the order of declaration.
  static std::vector<Group> grouped(const CLI::App& app) {
    std::vector<Group> groups;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      std::string name = command->get_group();
      if (name.empty()) continue;
      if (name.ends_with(kGroupSuffix)) name.resize(name.size() - kGroupSuffix.size());
      auto group = std::ranges::find(groups, name, &Group::name);
      if (group == groups.end()) group = groups.insert(groups.end(), {name, {}});
      group->commands += (group->commands.empty() ? "" : ", ") + command->get_name();
    }
    return groups;
  }

  /// CLI11 appends what a value is checked for: "N:INT in [1 - 9]", "TEXT:{a,b}".
  static std::string value_name(const std::string& type) {
    const std::size_t colon = type.find(':');
    if (colon == std::string::npos) return type;
    const bool choices = type.compare(colon + 1, 1, "{") == 0;
    return choices ? type.substr(colon + 1) : type.substr(0, colon);
  }
};

/// Seconds in one `unit`; 0: there is no such unit.
std::int64_t seconds_in(std::string_view unit) {
  if (unit.empty() || unit == "s") return 1;
  if (unit == "m") return 60;
  if (unit == "h") return 3600;
  return unit == "d" ? 86400 : 0;
}

/// Replaces "10m" by "600"; the error otherwise.
std::string to_seconds(std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const std::int64_t unit = seconds_in({parsed.ptr, end});
  const bool fits = parsed.ec == std::errc() && number > 0 && unit > 0 &&
                    number <= std::numeric_limits<std::int64_t>::max() / unit;
  if (!fits) return '"' + text + "\" is not a positive duration, as in 90s, 10m, 2h";
  text = std::to_string(number * unit);
  return {};
}

/// The command that was called, or `app` itself.
const CLI::App& called(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : called(*commands.front());
}

bool is(const CLI::Error& error, CLI::ExitCodes code) {
  return error.get_exit_code() == static_cast<int>(code);
}

std::string unexpected_argument(const CLI::App& app, const std::string& argument) {
  const bool wants_command = called(app).get_require_subcommand_min() > 0;
  const char* what = wants_command ? "unknown command \"" : "unexpected argument \"";
  return (argument.starts_with('-') ? "unknown option \"" : what) + argument + '"';
}

/// CLI11's message where it says what and where, ours elsewhere.
std::string reason(const CLI::App& app, const CLI::Error& error) {
  const bool missing = is(error, CLI::ExitCodes::RequiredError);
  const auto left = app.remaining();
  if (!left.empty() && (missing || is(error, CLI::ExitCodes::ExtrasError)))
    return unexpected_argument(app, left.front());
  if (missing && called(app).get_require_subcommand_min() > 0) return "no command given";
  const std::string text = error.what();
  const std::size_t colon = text.find(": ");
  if (is(error, CLI::ExitCodes::ConversionError) && colon != std::string::npos)
    return "not a number: " + text.substr(colon + 2);
  return text;
}

std::string error_line(const CLI::App* app, const CLI::Error& error) {
  return app->get_name() + ": " + base::printable(reason(*app, error), base::kMaxSentence) +
         " (see --help)\n";
}

}  // namespace

void apply_style(CLI::App& app, const std::string& version) {
  const auto formatter = std::make_shared<Formatter>();
  formatter->column_width(kColumn);
  formatter->label("SUBCOMMAND", "COMMAND");
  app.formatter(formatter);
  app.set_help_flag("-h,--help", "show this help and exit");
  app.set_version_flag("--version", version, "show the version and exit");
  app.failure_message(error_line);
}

void set_group(CLI::App& command, std::string_view group) {
  command.group(std::string(group).append(kGroupSuffix));
}

void add_help_all(CLI::App& app, const std::string& description) {
  app.set_help_all_flag("--help-all", description);
}

void leave_to_help_all(CLI::Option& option) { option.group(kFurther); }

CLI::Option* add_duration(CLI::App& app, const std::string& name, std::int64_t& seconds,
                          const std::string& description) {
  return app.add_option(name, seconds, description)
      ->type_name("DURATION")
      ->transform(CLI::Validator(to_seconds, ""));
}

void add_topology(CLI::App& app, std::string& topology) {
  app.add_option("--topology", topology, "host, synthetic:DESC, or a file (hwloc XML, JSON)")
      ->type_name("MACHINE")
      ->capture_default_str();
}

std::optional<int> parse(CLI::App& app, int argc, const char* const* argv) {
  constexpr int kWrongUsage = 2;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Error& stop) {
    return app.exit(stop) == 0 ? 0 : kWrongUsage;
  }
  return std::nullopt;
}

}  // namespace ka::usage
