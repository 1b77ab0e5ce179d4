// SPDX-License-Identifier: Apache-2.0
#include "affinity/config/entries.hpp"

// Debian's libtomlplusplus is built with exceptions, and its functions are named after that.
#include <toml++/toml.h>

#include <algorithm>

#include "affinity/config/near_miss.hpp"
#include "affinity/config/nesting.hpp"
#include "base/text.hpp"

namespace ka::config {
namespace {

Location location(const toml::source_region& region, const std::string& file) {
  return {file, region.begin.line, region.begin.column};
}

/// An array of strings; every other array is unfit.
Value array_value(const toml::array& array) {
  std::vector<std::string> strings;
  for (const toml::node& element : array) {
    const auto* string = element.as_string();
    if (string == nullptr) return Unfit{"an array of other things than strings"};
    strings.push_back(string->get());
  }
  return strings;
}

Value scalar_value(const toml::node& node) {
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* string = node.as_string()) return string->get();
  if (const auto* array = node.as_array()) return array_value(*array);
  return node.is_table() ? Unfit{"a table", true} : Unfit{"a date or time"};
}

/// Puts the values of a table and of the tables in it into `entries`; a table without any is one.
void flatten(const toml::table& table, const std::vector<std::string>& path,
             const std::string& file, Entries& entries) {
  for (const auto& [key, node] : table) {
    auto below = path;
    below.emplace_back(key.str());
    if (const auto* inner = node.as_table(); inner != nullptr && !inner->empty()) {
      flatten(*inner, below, file, entries);
    } else {
      entries[below] = {scalar_value(node), location(key.source(), file),
                        location(node.source(), file)};
    }
  }
}

base::Result<void> check_nesting(std::string_view text, const std::string& file) {
  const auto deep = find_too_deep(text);
  if (!deep) return {};
  const std::string_view before = text.substr(0, *deep);
  const auto line = static_cast<unsigned>(std::ranges::count(before, '\n')) + 1;
  const auto column = static_cast<unsigned>(before.size() - (before.rfind('\n') + 1)) + 1;
  return unexpected(error_at({file, line, column},
                             "nests deeper than " + std::to_string(kMaxNesting) + " levels"));
}

base::Error no_such(const toml::key& key, const char* what, const std::string& meant,
                    const std::string& file) {
  return error_at(location(key.source(), file), std::string(key.str()) + ": Kata has no such " +
                                                    what + "; did you mean " + meant + '?');
}

base::Result<void> check_top(const toml::table& root, const std::string& file) {
  for (const auto& [key, node] : root) {
    const std::string meant = meant_at_top(key.str(), node.is_table());
    if (meant.empty()) continue;
    return unexpected(no_such(key, node.is_table() ? "table" : "key", meant, file));
  }
  return {};
}

base::Result<void> check_runtime(const toml::table& root, const std::string& file) {
  const auto* runtime = root["runtime"].as_table();
  if (runtime == nullptr) return {};
  for (const auto& [key, node] : *runtime) {
    const std::string meant = meant_in_runtime(key.str());
    if (!meant.empty()) return unexpected(no_such(key, "key in [runtime]", meant, file));
  }
  return {};
}

base::Result<std::optional<Entries>> affinity_of(const toml::table& root, const std::string& file) {
  if (auto good = check_top(root, file); !good) return unexpected(std::move(good.error()));
  if (auto good = check_runtime(root, file); !good) return unexpected(std::move(good.error()));
  const toml::node* affinity = root.get("affinity");
  if (affinity == nullptr) return std::nullopt;
  const auto* table = affinity->as_table();
  if (table == nullptr) {
    return unexpected(error_at(location(affinity->source(), file), "affinity: must be a table"));
  }
  Entries entries;
  flatten(*table, {}, file, entries);
  return entries;
}

}  // namespace

base::Error error_at(const Location& where, const std::string& what) {
  return base::make_error(base::ErrorCode::kInvalid, where.file + ':' + std::to_string(where.line) +
                                                         ':' + std::to_string(where.column) + ": " +
                                                         base::printable(what, base::kMaxSentence));
}

std::string type_name(const Value& value) {
  struct Name {
    std::string operator()(bool) const { return "true or false"; }
    std::string operator()(std::int64_t) const { return "a number"; }
    std::string operator()(double) const { return "a float"; }
    std::string operator()(const std::string&) const { return "a string"; }
    std::string operator()(const std::vector<std::string>&) const { return "an array of strings"; }
    std::string operator()(const Unfit& unfit) const { return unfit.what; }
  };
  return std::visit(Name{}, value);
}

base::Result<Entries> parse_whole(const std::string& text, const std::string& file) {
  if (auto good = check_nesting(text, file); !good) return unexpected(std::move(good.error()));
  try {
    Entries entries;
    flatten(toml::parse(text, file), {}, file, entries);
    return entries;
  } catch (const toml::parse_error& error) {
    return unexpected(error_at(location(error.source(), file), std::string(error.description())));
  }
}

base::Result<std::optional<Entries>> parse_toml(const std::string& text, const std::string& file) {
  if (auto good = check_nesting(text, file); !good) return unexpected(std::move(good.error()));
  try {
    return affinity_of(toml::parse(text, file), file);
  } catch (const toml::parse_error& error) {
    return unexpected(error_at(location(error.source(), file), std::string(error.description())));
  }
}

}  // namespace ka::config
