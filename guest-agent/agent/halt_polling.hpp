// SPDX-License-Identifier: Apache-2.0
// Lets idle vCPUs poll for a while before they halt: a wake-up within that time costs no exit to
// the host (Documentation/virt/guest-halt-polling.rst). That is a driver of the guest's kernel,
// cpuidle-haltpoll, for all of its CPUs. It is in use from boot, or never: where it is built in it
// decides then, and no CPU that is online lets it go.
#pragma once

#include <filesystem>
#include <string>

#include "guest-agent/agent/kernel.hpp"
#include "policy/facts/guest.hpp"

namespace ka::agent {

class HaltPolling {
 public:
  /// Must outlive it.
  explicit HaltPolling(const Roots& roots) : roots_(roots) {}

  /// From now on they poll, or do what they did before, and what has come of it. Where they poll
  /// anyway nothing is written. An earlier agent's write is undone, too.
  policy::GuestIdle poll(bool wanted) const;

 private:
  policy::GuestIdle start() const;
  void stop() const;
  std::string driver() const;
  std::filesystem::path time_file() const;
  std::filesystem::path record() const;

  const Roots& roots_;
};

}  // namespace ka::agent
