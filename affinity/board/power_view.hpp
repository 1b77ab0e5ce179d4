// SPDX-License-Identifier: Apache-2.0
// How deeply CPUs may idle and who chooses their frequency, as pods request it, by
// kata-affinity-helper's last response.
#pragma once

#include <map>
#include <string>

#include "policy/facts/id_set.hpp"

namespace ka::board {

struct PowerView {
  policy::CpuSet cpus;                  ///< those of the last request that was responded to
  std::map<int, std::string> problems;  ///< by CPU: why it is not as requested
  std::string trouble;  ///< why there is no response; empty: there is, or need not be
};

}  // namespace ka::board
