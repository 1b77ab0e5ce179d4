// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/load.hpp"

#include <sched.h>

#include <cstdint>
#include <stop_token>

namespace ka::cli::selftest {
namespace {

/// Never runs elsewhere: other CPUs may belong to a pod.
void occupy(const std::stop_token& stop, int cpu) {
  const auto words = policy::CpuSet{cpu}.words();
  const auto* mask = reinterpret_cast<const cpu_set_t*>(words.data());
  if (::sched_setaffinity(0, words.size() * sizeof(std::uint64_t), mask) != 0) return;
  while (!stop.stop_requested()) {
  }
}

}  // namespace

Load::Load(const policy::CpuSet& cpus) {
  for (const int cpu : cpus) threads_.emplace_back(occupy, cpu);
}

}  // namespace ka::cli::selftest
