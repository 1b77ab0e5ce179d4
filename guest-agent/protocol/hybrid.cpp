// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/protocol/hybrid.hpp"

#include <algorithm>

namespace ka::guest {
namespace {

/// "OK 1073741824\n" and some room.
constexpr std::size_t kLongestLine = 32;

}  // namespace

std::string connect_line(std::uint32_t port) { return "CONNECT " + std::to_string(port) + '\n'; }

ConnectAnswer::State ConnectAnswer::consume(std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  line_ += bytes.substr(0, std::min(end, kLongestLine + 1));
  if (line_.size() > kLongestLine) return State::kNonsense;
  if (end == std::string_view::npos) return State::kMore;
  bytes.remove_prefix(end + 1);
  return line_.starts_with("OK") ? State::kOpen : State::kRefused;
}

}  // namespace ka::guest
