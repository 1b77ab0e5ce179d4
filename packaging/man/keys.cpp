// SPDX-License-Identifier: Apache-2.0
// Prints the keys of [affinity]: as a help text, for packaging/man/reference, or with the argument
// "markdown" as the table of docs/use/configuration.md.
#include <cstdio>
#include <string>
#include <string_view>

#include "affinity/config/keys.hpp"

namespace {

using ka::config::Key;

std::string default_of(const Key& key) {
  if (!key.fallback.empty()) return std::string(key.fallback);
  return key.type == ka::config::Type::kHousekeeping ? "as housekeeping" : "empty";
}

void print_help() {
  std::puts("Keys:");
  for (const Key& key : ka::config::kKeys) {
    std::string text(key.doc);
    if (!key.allowed.empty()) text += " Values: " + std::string(key.allowed) + ".";
    text += " Default: " + default_of(key) + ".";
    if (key.per_sandbox()) text += " Also in [affinity.handler.NAME].";
    std::printf("  %s  %s\n", std::string(key.name).c_str(), text.c_str());
  }
}

/// "obey manage" -> "`obey`, `manage`"
std::string in_code(std::string_view values) {
  std::string text;
  while (!values.empty()) {
    const std::size_t end = values.find(' ');
    text += (text.empty() ? "`" : ", `") + std::string(values.substr(0, end)) + '`';
    values.remove_prefix(end == std::string_view::npos ? values.size() : end + 1);
  }
  return text;
}

void print_markdown() {
  std::puts("| key | values | default | per handler | |\n|---|---|---|---|---|");
  for (const Key& key : ka::config::kKeys) {
    const std::string fallback = key.fallback.empty() ? default_of(key) : in_code(key.fallback);
    std::printf("| `%s` | %s | %s | %s | %s |\n", std::string(key.name).c_str(),
                in_code(key.allowed).c_str(), fallback.c_str(), key.per_sandbox() ? "yes" : "",
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
