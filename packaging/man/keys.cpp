// SPDX-License-Identifier: Apache-2.0
// Prints the keys of [affinity]: as a help text, for packaging/man/reference, or with the argument
// "markdown" as the table of docs/use/configuration.md.
#include <cstdio>
#include <string>
#include <string_view>

#include "affinity/config/keys.hpp"

namespace {

using ka::config::Key;
using ka::config::Type;

std::string default_of(const Key& key) {
  if (!key.fallback.empty()) return std::string(key.fallback);
  return key.type == Type::kHousekeeping ? "as housekeeping" : "empty";
}

/// What a key without a list of values takes.
const char* form_of(Type type) {
  switch (type) {
    case Type::kFlag:
      return "true or false";
    case Type::kPath:
      return "an absolute path";
    case Type::kProgram:
      return "a name, or an absolute path";
    case Type::kPathOrNone:
      return "an absolute path, or empty";
    case Type::kAddress:
      return "ADDRESS:PORT, or empty";
    case Type::kSeconds:
      return "1 to 86400";
    case Type::kUri:
      return "a URI, or empty";
    case Type::kIds:
    case Type::kNames:
    case Type::kNamespaces:
      return "a list of strings";
    case Type::kHousekeeping:
      return "a cpuset";
    case Type::kCpus:
      return "a cpuset, or empty";
    case Type::kCount:
      return "1 or more";
    case Type::kPriority:
      return "1 to 49";
    case Type::kClass:
      return "the name of a class, or empty";
    case Type::kUser:
      return "a user id, or 0";
    case Type::kWords:
      return "in a list";
    case Type::kChoice:
      return "";
  }
  return "";
}

/// "obey, manage", each between `quote`; what is no list of values follows.
std::string values_of(const Key& key, const char* quote) {
  std::string text;
  for (std::string_view rest = key.allowed; !rest.empty();) {
    const std::size_t end = rest.find(' ');
    text +=
        (text.empty() ? "" : ", ") + std::string(quote) + std::string(rest.substr(0, end)) + quote;
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  const std::string form = form_of(key.type);
  return text + (text.empty() || form.empty() ? "" : ", ") + form;
}

void print_help() {
  std::puts("Keys:");
  for (const Key& key : ka::config::kKeys) {
    std::string text(key.doc);
    text += " Values: " + values_of(key, "") + ".";
    text += " Default: " + default_of(key) + ".";
    if (key.per_sandbox()) text += " Also in [affinity.handler.NAME].";
    std::printf("  %s  %s\n", std::string(key.name).c_str(), text.c_str());
  }
}

void print_markdown() {
  std::puts("| key | values | default | per handler | |\n|---|---|---|---|---|");
  for (const Key& key : ka::config::kKeys) {
    const std::string fallback =
        key.fallback.empty() ? default_of(key) : '`' + std::string(key.fallback) + '`';
    std::printf("| `%s` | %s | %s | %s | %s |\n", std::string(key.name).c_str(),
                values_of(key, "`").c_str(), fallback.c_str(), key.per_sandbox() ? "yes" : "",
                std::string(key.doc).c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "markdown") {
    print_markdown();
  } else {
    print_help();
  }
}
