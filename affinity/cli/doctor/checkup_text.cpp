// SPDX-License-Identifier: Apache-2.0
// The output of `doctor` as text and JSON.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <sstream>
#include <utility>

#include "affinity/cli/doctor/checkup.hpp"

namespace ka::cli {
namespace {

using Level = Symptom::Level;

/// Groups in the order in which they are shown, and the checks of each.
constexpr auto kGroups = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"node", "root debugfs cgroup isolcpus nohz smt irq agents"},
    {"kubelet", "kubelet"},
    {"runtime", "nri"},
    {"Kata", "kata config profile helper grade"},
    {"sandboxes", "daemon sources vcpus memory quota guest"},
});

constexpr auto kWords = std::to_array<std::pair<Level, std::string_view>>(
    {{Level::kBad, "FAIL"}, {Level::kNote, "WARN"}, {Level::kGood, "OK"}});

std::string_view word_of(Level level) {
  return std::ranges::find(kWords, level, &std::pair<Level, std::string_view>::first)->second;
}

long long count(const std::vector<Symptom>& symptoms, Level level) {
  return std::ranges::count(symptoms, level, &Symptom::level);
}

std::string lines_of(const Symptom& symptom) {
  std::string text =
      fmt::format("  {:<4}  {:<8} {}\n", word_of(symptom.level), symptom.check, symptom.text);
  if (!symptom.advice.empty()) text += fmt::format("{:8}-> {}\n", "", symptom.advice);
  return text;
}

std::string section(std::string_view group, const std::vector<Symptom>& symptoms) {
  std::string text = std::string(group) + '\n';
  const std::size_t heading = text.size();
  for (const Symptom& symptom : symptoms) {
    if (group_of(symptom.check) == group) text += lines_of(symptom);
  }
  return text.size() > heading ? text + '\n' : text + "  OK    no problem found\n\n";
}

/// Each command once, those that fix a failure first.
std::vector<std::string> commands_of(const std::vector<Symptom>& symptoms) {
  std::vector<std::string> commands;
  for (const Level level : {Level::kBad, Level::kNote}) {
    for (const Symptom& symptom : symptoms) {
      const bool known = std::ranges::count(commands, symptom.command) > 0;
      if (symptom.level != level || symptom.command.empty() || known) continue;
      commands.push_back(symptom.command);
    }
  }
  return commands;
}

}  // namespace

std::string_view group_of(std::string_view check) {
  const std::string word = ' ' + std::string(check) + ' ';
  for (const auto& [group, checks] : kGroups) {
    if ((' ' + std::string(checks) + ' ').find(word) != std::string::npos) return group;
  }
  return kGroups.front().first;
}

std::string describe_checkup(const std::vector<Symptom>& symptoms) {
  std::string text;
  for (const auto& [group, checks] : kGroups) text += section(group, symptoms);
  text += "Summary:";
  for (const auto& [level, word] : kWords) {
    text += fmt::format("{} {} {}", level == Level::kBad ? "" : ",", count(symptoms, level), word);
  }
  text += '\n';
  const auto commands = commands_of(symptoms);
  if (!commands.empty()) text += "To fix, after reading the lines above:\n";
  for (const std::string& command : commands) text += "  " + command + '\n';
  return text;
}

std::string coloured(const std::string& text) {
  constexpr std::array<std::string_view, 3> kColours{"\033[31m", "\033[33m", "\033[32m"};
  std::string painted;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    for (std::size_t i = 0; i < kWords.size(); ++i) {
      const std::string_view word = kWords[i].second;
      if (!line.starts_with(fmt::format("  {} ", word))) continue;
      line = fmt::format("  {}{}\033[0m{}", kColours[i], word, line.substr(2 + word.size()));
      break;
    }
    painted += line + '\n';
  }
  return painted;
}

boost::json::object to_json(const std::vector<Symptom>& symptoms) {
  boost::json::array checks;
  for (const Symptom& symptom : symptoms) {
    checks.push_back({{"check", symptom.check},
                      {"group", group_of(symptom.check)},
                      {"level", level_name(symptom.level)},
                      {"text", symptom.text},
                      {"advice", symptom.advice},
                      {"command", symptom.command}});
  }
  return {{"ok", count(symptoms, Level::kBad) == 0},
          {"checks", std::move(checks)},
          {"summary",
           {{"good", count(symptoms, Level::kGood)},
            {"note", count(symptoms, Level::kNote)},
            {"bad", count(symptoms, Level::kBad)}}}};
}

}  // namespace ka::cli
