// SPDX-License-Identifier: Apache-2.0
// Prints the keys of [affinity] as a help text, for packaging/man/reference.
#include <cstdio>
#include <string>

#include "affinity/config/keys.hpp"

namespace {

std::string default_of(const ka::config::Key& key) {
  if (!key.fallback.empty()) return std::string(key.fallback);
  return key.type == ka::config::Type::kHousekeeping ? "as housekeeping" : "empty";
}

}  // namespace

int main() {
  std::puts("Keys:");
  for (const ka::config::Key& key : ka::config::kKeys) {
    std::string text(key.doc);
    if (!key.allowed.empty()) text += " Values: " + std::string(key.allowed) + ".";
    text += " Default: " + default_of(key) + ".";
    if (key.per_sandbox) text += " Also in [affinity.handler.NAME].";
    std::printf("  %s  %s\n", std::string(key.name).c_str(), text.c_str());
  }
}
