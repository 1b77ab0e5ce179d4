// SPDX-License-Identifier: Apache-2.0
#include "base/runtime_socket.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

namespace ka::base {

std::optional<std::filesystem::path> runtime_socket(const std::filesystem::path& run,
                                                    const std::filesystem::path& socket) {
  constexpr std::array<std::string_view, 4> kFolders = {"vc", "kata", "containerd", "libvirt"};
  std::error_code failed;
  const auto folder = std::filesystem::canonical(run, failed);
  if (failed || !socket.is_absolute()) return std::nullopt;
  auto real = std::filesystem::weakly_canonical(socket, failed);
  if (failed) return std::nullopt;
  const auto below = real.lexically_relative(folder);
  const auto is_first = [&](std::string_view name) { return below.begin()->native() == name; };
  if (below.empty() || std::ranges::none_of(kFolders, is_first)) return std::nullopt;
  if (std::ranges::find(below, "rootfs") != below.end()) return std::nullopt;
  return real;
}

}  // namespace ka::base
