// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/preferences.hpp"

#include <optional>

namespace ka::policy::allocate {
namespace {

using Found = Annotations::const_iterator;

Found find(const Annotations& annotations, std::string_view key, std::string_view container) {
  const auto own = annotations.find(std::string(key) + '.' + std::string(container));
  return own != annotations.end() ? own : annotations.find(key);
}

std::string input_error(const Found& found, std::string_view allowed) {
  return "annotation " + found->first + ": \"" + found->second + "\" is not one of " +
         std::string(allowed);
}

std::optional<bool> parse_flag(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

}  // namespace

Expected<CpuPreferences, std::string> read_preferences(const Annotations& annotations,
                                                       std::string_view container) {
  CpuPreferences preferences;
  const auto kind = find(annotations, kCpuClassAnnotation, container);
  if (kind != annotations.end()) {
    const auto cpu_class = parse_cpu_class(kind->second);
    if (!cpu_class) return unexpected(input_error(kind, "any, fast, efficient"));
    preferences.cpu_class = *cpu_class;
  }
  const auto isolated = find(annotations, kPreferIsolatedAnnotation, container);
  if (isolated != annotations.end()) {
    const auto flag = parse_flag(isolated->second);
    if (!flag) return unexpected(input_error(isolated, "true, false"));
    preferences.prefer_isolated = *flag;
  }
  return preferences;
}

}  // namespace ka::policy::allocate
