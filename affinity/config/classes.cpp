// SPDX-License-Identifier: Apache-2.0
#include "affinity/config/classes.hpp"

#include <algorithm>
#include <iterator>

#include "base/text.hpp"

namespace ka::config {
namespace {

constexpr std::string_view kClasses = "classes";

const ClassKey* find_class_key(std::string_view name) {
  const auto* key = std::ranges::find(kClassKeys, name, &ClassKey::name);
  return key == std::end(kClassKeys) ? nullptr : key;
}

/// "nice, io_weight"
std::string names_of_keys() {
  std::string text;
  for (const ClassKey& key : kClassKeys) {
    text += (text.empty() ? "" : ", ") + std::string(key.name);
  }
  return text;
}

std::string check_number(const ClassKey& key, const Value& value) {
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number != nullptr && *number >= key.lowest && *number <= key.highest) return {};
  return "must be a whole number from " + std::to_string(key.lowest) + " to " +
         std::to_string(key.highest);
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
  const ClassKey* key = path.size() == 3 ? find_class_key(path[2]) : nullptr;
  if (key == nullptr) return {"unknown key; a class has " + names_of_keys()};
  return {check_number(*key, value), true};
}

policy::plan::ResourceClasses make_classes(const Entries& entries) {
  policy::plan::ResourceClasses classes;
  for (const auto& [path, entry] : entries) {
    if (!is_of_class(path) || path.size() != 3) continue;
    const auto value = static_cast<int>(std::get<std::int64_t>(entry.value));
    classes.by_name[path[1]].*(find_class_key(path[2])->member) = value;
  }
  return classes;
}

}  // namespace ka::config
