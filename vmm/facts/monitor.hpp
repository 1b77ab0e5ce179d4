// SPDX-License-Identifier: Apache-2.0
// A VMM's monitor, of any protocol: found by a probe, started, refreshed; it reports facts
// or failures. The kinds are listed in vmm/monitors/table.hpp.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::vmm {

/// What is known of a VMM when its monitor is searched.
struct Probe {
  std::string sandbox;
  /// Of the VMM. Empty for a program in a container, whose owner chose it.
  std::vector<std::string> command_line;
  std::filesystem::path named_socket;  ///< that a source named for us; empty: none
  bool by_operator = false;            ///< an operator named the VMM, and vouches for its arguments
  std::filesystem::path run;           ///< where runtimes keep their VMs' sockets, /run

  bool operator==(const Probe&) const = default;
};

struct MonitorOptions {
  std::filesystem::path socket;
  /// For each step of a conversation: a command, or a question with its whole answer.
  std::chrono::milliseconds deadline{2000};
  /// After a failure: the first pause, doubled up to the last.
  std::chrono::milliseconds first_pause{100};
  std::chrono::milliseconds last_pause{10000};
};

/// Called from within the io_context. An empty function is not called; any of them may destroy the
/// monitor.
struct MonitorHandlers {
  /// After the start, after each refresh(), and when the VMM itself reports a change.
  std::function<void(MonitorFacts)> facts;
  /// kUnavailable (no server, no VM yet, no answer in time), kGone (no such socket), kInvalid
  /// (another protocol). The monitor retries by itself.
  std::function<void(const base::Error&)> failed;
};

/// Lives in one io_context that one thread runs, and must not outlive it. Once it is destroyed no
/// handler is called any more.
class Monitor {
 public:
  Monitor() = default;
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;
  virtual ~Monitor() = default;

  /// Asks again. Requests that come while one is answered become one more.
  virtual void refresh() = 0;
};

}  // namespace ka::vmm
