// SPDX-License-Identifier: Apache-2.0
#include "affinity/config/classes.hpp"

#include <algorithm>
#include <iterator>

#include "base/text.hpp"

namespace ka::config {
namespace {

constexpr std::string_view kClasses = "classes";

template <typename Key, std::size_t kSize>
const Key* find(const Key (&keys)[kSize], std::string_view name) {
  const auto* key = std::ranges::find(keys, name, &Key::name);
  return key == std::end(keys) ? nullptr : key;
}

/// "nice, io_weight, l3, l2, mba"
std::string names_of_keys() {
  std::string text;
  const auto add = [&text](const auto& key) {
    text += (text.empty() ? "" : ", ") + std::string(key.name);
  };
  std::ranges::for_each(kClassNumbers, add);
  std::ranges::for_each(kClassTexts, add);
  return text;
}

std::string check_number(const ClassNumber& key, const Value& value) {
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number != nullptr && *number >= key.lowest && *number <= key.highest) return {};
  return "must be a whole number from " + std::to_string(key.lowest) + " to " +
         std::to_string(key.highest);
}

std::string check_text(const ClassText& key, const Value& value) {
  policy::plan::ResourceClass ignored;
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr && key.set(ignored, *text)) return {};
  return "must be " + std::string(key.values);
}

void set(policy::plan::ResourceClass& given, std::string_view name, const Value& value) {
  if (const ClassText* key = find(kClassTexts, name)) {
    key->set(given, std::get<std::string>(value));
  } else {
    given.*(find(kClassNumbers, name)->member) = static_cast<int>(std::get<std::int64_t>(value));
  }
}

}  // namespace

bool is_of_class(const std::vector<std::string>& path) { return path[0] == kClasses; }

ClassError check_class(const std::vector<std::string>& path, const Value& value) {
  const auto* table = std::get_if<Unfit>(&value);
  const bool is_empty = table != nullptr && table->is_empty_table;
  if (path.size() == 1 && is_empty) return {};
  if (path.size() == 1 || (path.size() == 2 && !is_empty)) {
    return {"must be tables [affinity.classes.NAME]"};
  }
  if (!base::is_id(path[1])) return {"is not a class name (A-Z, a-z, 0-9, \"_\", \".\", \"-\")"};
  if (path.size() == 2) return {"a class has at least one of " + names_of_keys()};
  const std::string_view name = path.size() == 3 ? std::string_view(path[2]) : "";
  if (const auto* key = find(kClassNumbers, name)) return {check_number(*key, value), true};
  if (const auto* key = find(kClassTexts, name)) return {check_text(*key, value), true};
  return {"unknown key; a class has " + names_of_keys()};
}

policy::plan::ResourceClasses make_classes(const Entries& entries) {
  policy::plan::ResourceClasses classes;
  for (const auto& [path, entry] : entries) {
    if (!is_of_class(path) || path.size() != 3) continue;
    set(classes.by_name[path[1]], path[2], entry.value);
  }
  return classes;
}

}  // namespace ka::config
