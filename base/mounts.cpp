// SPDX-License-Identifier: Apache-2.0
#include "base/mounts.hpp"

#include <optional>

#include "base/split.hpp"

namespace ka::base {
namespace {

/// The number of fields before " - " varies.
std::optional<Mount> parse_mount(std::string_view line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  const auto front = split(line.substr(0, dash), ' ');
  const auto back = split(line.substr(dash + 3), ' ');
  if (front.size() < 5 || back.size() < 3) return std::nullopt;
  return Mount{front[2], front[3], front[4], back[0], back[2]};
}

}  // namespace

std::vector<Mount> parse_mounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  for (const std::string_view line : split(mountinfo, '\n')) {
    if (const auto mount = parse_mount(line)) mounts.push_back(*mount);
  }
  return mounts;
}

}  // namespace ka::base
