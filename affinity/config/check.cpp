// SPDX-License-Identifier: Apache-2.0
#include "affinity/config/check.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>

#include "affinity/config/classes.hpp"
#include "affinity/config/keys.hpp"
#include "affinity/config/near_miss.hpp"
#include "affinity/documents/settings.hpp"
#include "affinity/messages/terms.hpp"
#include "base/text.hpp"
#include "policy/facts/partition.hpp"
#include "vmm/address/libvirt_uri.hpp"

namespace ka::config {
namespace {

using Path = std::vector<std::string>;

/// What a pod may set by an annotation.
std::vector<std::string_view> annotations() {
  std::vector<std::string_view> names{"environment", kDomainAnnotation, policy::kGradeKey,
                                      policy::kTuningKey};
  for (const policy::ClassKindInfo& kind : policy::kClassKinds) names.push_back(kind.name);
  return names;
}

constexpr std::int64_t kMostSeconds = 86400;
constexpr std::int64_t kMostUsers = 4294967294;   ///< (uid_t)-1 is none
constexpr std::string_view kManaged = "managed";  ///< a table

std::string join(const Path& path) {
  std::string text = "affinity";
  for (const std::string& part : path) text += '.' + part;
  return text;
}

std::vector<std::string_view> split(std::string_view words) {
  std::vector<std::string_view> parts;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    parts.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return parts;
}

/// `"a", "b", "c"`.
std::string quoted(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) {
    text += (text.empty() ? "\"" : ", \"") + std::string(word) + '"';
  }
  return text;
}

bool contains(const std::vector<std::string_view>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

std::vector<std::string_view> sandbox_keys() {
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) {
    if (key.per_sandbox()) names.push_back(key.name);
  }
  return names;
}

// Each of these returns what is wrong with a value; empty when nothing is.

std::string must_be(const char* wanted, const Value& value) {
  return std::string("must be ") + wanted + ", not " + type_name(value);
}

std::string check_choice(const Key& key, const std::string& text) {
  const auto allowed = split(key.allowed);
  if (contains(allowed, text)) return {};
  return '"' + text + "\" is not one of " + quoted(allowed);
}

std::string check_housekeeping(const std::string& text) {
  const auto parsed = documents::parse_housekeeping(text);
  return parsed ? "" : parsed.error().message;
}

std::string check_path(const std::string& text) {
  return text.starts_with('/') ? "" : '"' + text + "\" is not an absolute path";
}

std::string check_uri(const std::string& text) {
  if (text.empty()) return {};
  const auto good = vmm::check_libvirt_uri(text);
  return good ? "" : good.error().message;
}

std::string check_program(const std::string& text) {
  if (!text.empty() && text.find('/') == std::string::npos) return {};
  return text.starts_with('/') ? "" : '"' + text + "\" is neither a name nor an absolute path";
}

bool is_numeric_address(const std::string& address) {
  std::array<unsigned char, sizeof(in6_addr)> ignored{};
  if (address.starts_with('[') && address.ends_with(']')) {
    return ::inet_pton(AF_INET6, address.substr(1, address.size() - 2).c_str(), ignored.data()) ==
           1;
  }
  return ::inet_pton(AF_INET, address.c_str(), ignored.data()) == 1;
}

std::string check_address(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  const std::string_view port = std::string_view(text).substr(std::min(colon + 1, text.size()));
  unsigned number = 0;
  const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  const bool good_port =
      error == std::errc{} && stop == port.data() + port.size() && number > 0 && number <= 65535;
  if (good_port && is_numeric_address(text.substr(0, colon))) return {};
  return '"' + text + R"(" is not an address like "127.0.0.1:9101" or "[::1]:9101")";
}

std::string check_cpuset(const std::string& text) {
  const auto parsed = policy::parse_list<policy::CpuTag>(text);
  return parsed ? "" : '"' + text + "\" is not a cpuset: " + parsed.error().reason;
}

std::string check_text(const Key& key, const std::string& text) {
  switch (key.type) {
    case Type::kCpus:
      return check_cpuset(text);
    case Type::kChoice:
      return check_choice(key, text);
    case Type::kHousekeeping:
      return check_housekeeping(text);
    case Type::kPath:
      return check_path(text);
    case Type::kProgram:
      return check_program(text);
    case Type::kUri:
      return check_uri(text);
    case Type::kPathOrNone:
      return text.empty() ? "" : check_path(text);
    default:
      return check_address(text);
  }
}

std::string check_words(const std::vector<std::string>& words,
                        const std::vector<std::string_view>& allowed) {
  for (const std::string& word : words) {
    if (!contains(allowed, word)) return '"' + word + "\" is not one of " + quoted(allowed);
  }
  return {};
}

std::string check_namespaces(const std::vector<std::string>& names) {
  const auto wrong = std::ranges::find_if_not(names, base::is_id);
  return wrong == names.end() ? "" : '"' + *wrong + "\" is not a namespace";
}

std::string check_ids(const std::vector<std::string>& ids) {
  const auto wrong = std::ranges::find_if_not(ids, base::is_id);
  if (wrong == ids.end()) return {};
  return '"' + *wrong + "\" is not a sandbox id (1 to " + std::to_string(base::kMaxId) +
         " characters of A-Z, a-z, 0-9, \"_\", \".\", \"-\")";
}

std::string check_array(const Key& key, const std::vector<std::string>& words) {
  switch (key.type) {
    case Type::kNames:
      return check_words(words, annotations());
    case Type::kWords:
      return check_words(words, split(key.allowed));
    case Type::kNamespaces:
      return check_namespaces(words);
    default:
      return check_ids(words);
  }
}

bool is_array(Type type) {
  return type == Type::kNames || type == Type::kIds || type == Type::kWords ||
         type == Type::kNamespaces;
}

std::string check_value(const Key& key, const Value& value) {
  if (key.type == Type::kFlag) {
    return std::holds_alternative<bool>(value) ? "" : must_be("true or false", value);
  }
  if (key.type == Type::kSeconds) {
    const auto* seconds = std::get_if<std::int64_t>(&value);
    if (seconds != nullptr && *seconds >= 1 && *seconds <= kMostSeconds) return {};
    return "must be a whole number of seconds from 1 to " + std::to_string(kMostSeconds);
  }
  if (key.type == Type::kCount) {
    const auto* number = std::get_if<std::int64_t>(&value);
    if (number != nullptr && *number >= 1 && *number <= policy::kMaxIds) return {};
    return "must be a whole number from 1 to " + std::to_string(policy::kMaxIds);
  }
  if (key.type == Type::kPriority) {
    const auto* number = std::get_if<std::int64_t>(&value);
    if (number != nullptr && *number >= 1 && *number <= policy::kMostPriority) return {};
    return "must be a whole number from 1 to " + std::to_string(policy::kMostPriority);
  }
  if (key.type == Type::kClass) {
    return std::holds_alternative<std::string>(value) ? ""
                                                      : "must be the name of a class, or empty";
  }
  if (key.type == Type::kUser) {
    const auto* number = std::get_if<std::int64_t>(&value);
    if (number != nullptr && *number >= 0 && *number <= kMostUsers) return {};
    return "must be a user id from 0 to " + std::to_string(kMostUsers);
  }
  if (is_array(key.type)) {
    const auto* words = std::get_if<std::vector<std::string>>(&value);
    return words == nullptr ? must_be("an array of strings", value) : check_array(key, *words);
  }
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? must_be("a string", value) : check_text(key, *text);
}

/// The key that a path names; nullptr where no such key is allowed.
const Key* key_of(const Path& path) {
  if (path.size() == 1) return path[0].find('.') == std::string::npos ? find_key(path[0]) : nullptr;
  if (path.size() == 2 && path[0] == kManaged) return find_key(path[0] + '.' + path[1]);
  if (path.size() != 3 || path[0] != "handler" || path[1].empty()) return nullptr;
  const Key* key = find_key(path[2]);
  return key != nullptr && key->per_sandbox() ? key : nullptr;
}

/// A table for a handler's keys, or for those of managed, that has none.
bool is_empty_table(const Path& path, const Value& value) {
  const auto* table = std::get_if<Unfit>(&value);
  if (table == nullptr || !table->is_empty_table) return false;
  if (path[0] == kManaged) return path.size() == 1;
  return path[0] == "handler" && (path.size() == 1 || (path.size() == 2 && !path[1].empty()));
}

std::string unknown_key(const Path& path) {
  if (path.size() == 3 && path[0] == "handler" && find_key(path[2]) != nullptr) {
    return "is node-wide and cannot be set per handler; per handler: " + quoted(sandbox_keys());
  }
  const bool managed = path.size() == 2 && path[0] == kManaged;
  const std::string_view meant = nearest_key(managed ? path[0] + '.' + path[1] : path.back());
  return meant.empty() || meant == path.back()
             ? "unknown key"
             : "unknown key; did you mean " + std::string(meant) + '?';
}

/// Of a good value: the CPUs that it names.
policy::CpuSet cpus_of(const Key& key, const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr && key.type == Type::kHousekeeping) {
    return documents::parse_housekeeping(*text)->cpus;
  }
  if (text != nullptr && key.type == Type::kCpus) return *policy::parse_list<policy::CpuTag>(*text);
  return {};
}

base::Result<void> check_of_class(const Path& path, const Entry& entry) {
  const auto [wrong, at_value] = check_class(path, entry.value);
  if (wrong.empty()) return {};
  return unexpected(error_at(at_value ? entry.value_at : entry.key_at, join(path) + ": " + wrong));
}

/// A namespace that two lists of managed name would have two classes.
base::Result<void> check_lists(const Entries& entries) {
  std::map<std::string, std::string> lists;
  for (const auto& [path, entry] : entries) {
    const Key* key = key_of(path);
    if (key == nullptr || key->type != Type::kNamespaces || path[0] != kManaged) continue;
    for (const std::string& name : std::get<std::vector<std::string>>(entry.value)) {
      const auto [known, added] = lists.try_emplace(name, path.back());
      if (added || known->second == path.back()) continue;
      return unexpected(error_at(
          entry.value_at, join(path) + ": \"" + name + "\" is in " + known->second + ", too"));
    }
  }
  return {};
}

/// Once the classes themselves are good.
base::Result<void> check_class_names(const Entries& entries) {
  const auto classes = make_classes(entries);
  for (const auto& [path, entry] : entries) {
    const Key* key = is_of_class(path) ? nullptr : key_of(path);
    if (key == nullptr || key->type != Type::kClass) continue;
    const auto& name = std::get<std::string>(entry.value);
    const auto found = classes.by_name.find(name);
    const bool has_rdt = found != classes.by_name.end() && !found->second.rdt.empty();
    if (name.empty() || has_rdt) continue;
    return unexpected(error_at(entry.value_at, join(path) + ": no [affinity.classes." +
                                                   base::printable(name) + "] has l3, l2 or mba"));
  }
  return {};
}

}  // namespace

base::Result<void> check(const Entries& entries) {
  for (const auto& [path, entry] : entries) {
    if (is_of_class(path)) {
      if (auto good = check_of_class(path, entry); !good) return good;
      continue;
    }
    if (is_empty_table(path, entry.value)) continue;
    const Key* key = key_of(path);
    if (key == nullptr) {
      return unexpected(error_at(entry.key_at, join(path) + ": " + unknown_key(path)));
    }
    if (const auto wrong = check_value(*key, entry.value); !wrong.empty()) {
      return unexpected(error_at(entry.value_at, join(path) + ": " + wrong));
    }
  }
  auto good = check_class_names(entries);
  return good ? check_lists(entries) : good;
}

base::Result<void> check_cpus(const Entries& entries, const policy::CpuSet& machine) {
  for (const auto& [path, entry] : entries) {
    const Key* key = key_of(path);
    if (key == nullptr) continue;
    const policy::CpuSet strange = cpus_of(*key, entry.value) - machine;
    if (strange.empty()) continue;
    return unexpected(error_at(
        entry.value_at, join(path) + ": the machine has no " + messages::cpus_text(strange)));
  }
  return {};
}

}  // namespace ka::config
