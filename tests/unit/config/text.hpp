// SPDX-License-Identifier: Apache-2.0
// A configuration of one file, for tests.
#pragma once

#include <algorithm>
#include <string>

#include "affinity/config/config.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

namespace ka::tests {

/// Loads one file with this text.
inline base::Result<config::Config> load(const std::string& text) {
  const TempDir dir;
  dir.write("c.toml", text);
  return config::load_config(dir.path() / "c.toml");
}

/// What is wrong with a text, from "<line>:<column>: " on.
inline std::string wrong(const std::string& text) {
  const auto config = load(text);
  if (config) return "";
  const std::string& message = config.error().message;
  CHECK(config.error().code == base::ErrorCode::kInvalid);
  CHECK(std::ranges::count(message, '\n') == 0);
  const std::size_t name = message.find("c.toml:");
  return name == std::string::npos ? message : message.substr(name + 7);
}

}  // namespace ka::tests
