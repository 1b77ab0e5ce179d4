// SPDX-License-Identifier: Apache-2.0
// How deeply CPUs may idle and who chooses their frequency, as pods request it, by
// kata-affinity-helper's last response.
#pragma once

#include <string>

#include "policy/facts/id_set.hpp"
#include "policy/facts/power.hpp"

namespace ka::board {

struct PowerView {
  policy::CpuSet cpus;  ///< those of the last request that was responded to
  policy::PowerProblems problems;
  std::string trouble;  ///< why there is no response; empty: there is, or need not be
};

}  // namespace ka::board
