// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/protocol/line.hpp"

#include <algorithm>

namespace ka::guest {

std::optional<std::size_t> LineScanner::find(std::string_view bytes) {
  const std::size_t before = tail_.size();
  tail_ += bytes;
  const std::size_t at = tail_.rfind(kLineMark);
  std::optional<std::size_t> behind;
  // A mark that ended in an earlier piece was found then: the tail is shorter than a mark.
  if (at != std::string::npos) behind = at + kLineMark.size() - before;
  const std::size_t keep = behind ? bytes.size() - *behind : tail_.size();
  tail_.erase(0, tail_.size() - std::min(keep, kLineMark.size() - 1));
  return behind;
}

}  // namespace ka::guest
