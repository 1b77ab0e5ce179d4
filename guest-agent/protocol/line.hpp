// SPDX-License-Identifier: Apache-2.0
// A virtio-serial port has no connections: what was written before the host's end was reopened
// is still on the line. So the host begins with a mark, the agent answers with it, and both forget
// all that came before it. The mark cannot be part of a frame of ours: these hold numbers and plain
// text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ka::guest {

inline constexpr std::string_view kLineMark{
    "\xff\xfe\xff\xfdkata-affinity\xff\xfe\xff\xfd\xff\xff\xff\xff", 25};

/// Finds the mark in a stream that arrives in pieces.
class LineScanner {
 public:
  /// Where in `bytes` the text behind the last mark begins; absent when no mark ends in `bytes`.
  std::optional<std::size_t> find(std::string_view bytes);

 private:
  std::string tail_;  ///< the last bytes before: the beginning of a mark may be in it
};

}  // namespace ka::guest
