// SPDX-License-Identifier: Apache-2.0
// A busy neighbour: threads of this program that use up CPUs. They end with it, also by kill -9.
#pragma once

#include <thread>
#include <vector>

#include "policy/facts/id_set.hpp"

namespace ka::cli::selftest {

class Load {
 public:
  /// Keeps each of the CPUs busy with a thread of its own while it lives. A CPU that the kernel
  /// does not allow this program stays idle.
  explicit Load(const policy::CpuSet& cpus);

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace ka::cli::selftest
