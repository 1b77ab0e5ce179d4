// SPDX-License-Identifier: Apache-2.0
// Containers that are to have no CFS quota, by kata-affinity-helper's last response.
#pragma once

#include <map>
#include <string>

namespace ka::board {

struct QuotaView {
  /// Those of the last request that was responded to, "POD/CONTAINER" by ids: why a quota of its
  /// cgroups stays; empty: it was taken away.
  std::map<std::string, std::string> containers;
  std::string trouble;  ///< why there is no response; empty: there is, or need not be
};

}  // namespace ka::board
