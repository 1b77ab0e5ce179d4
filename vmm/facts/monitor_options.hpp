// SPDX-License-Identifier: Apache-2.0
// How a VMM's monitor is asked, whatever it speaks.
#pragma once

#include <chrono>
#include <filesystem>

namespace ka::vmm {

struct MonitorOptions {
  std::filesystem::path socket;
  /// For each step of a conversation: a command, or a question with its whole answer.
  std::chrono::milliseconds deadline{2000};
  /// After a failure: the first pause, doubled up to the last.
  std::chrono::milliseconds first_pause{100};
  std::chrono::milliseconds last_pause{10000};
};

}  // namespace ka::vmm
