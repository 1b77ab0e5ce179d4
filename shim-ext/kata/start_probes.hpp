// SPDX-License-Identifier: Apache-2.0
// Probes sandboxes again whose shim runs and whose VMM nothing has reported yet. Kata and the
// runtime report it after its guest has booted; until then KVM makes kernel threads for it, with
// all CPUs, and nothing notifies of them.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "base/clock.hpp"
#include "base/rpc/timer.hpp"

namespace ka::kata {

/// Must outlive the running of its io_context.
class StartProbes {
 public:
  /// After the one before, and the first one after the shim was seen.
  static constexpr std::array<std::chrono::milliseconds, 9> kPauses{
      std::chrono::milliseconds(100),  std::chrono::milliseconds(100),
      std::chrono::milliseconds(200),  std::chrono::milliseconds(400),
      std::chrono::milliseconds(800),  std::chrono::milliseconds(1600),
      std::chrono::milliseconds(3200), std::chrono::milliseconds(6400),
      std::chrono::milliseconds(12800)};

  /// `probe` a sandbox; false: not again. `clock` must outlive it.
  StartProbes(boost::asio::io_context& io, const base::Clock& clock,
              std::function<bool(const std::string& sandbox)> probe);

  /// A shim was seen that is not looked at yet.
  void add(const std::string& sandbox);

 private:
  struct Entry {
    base::Clock::Time due;
    std::size_t probes = 0;
  };

  void probe_due();
  void await_next();

  const base::Clock& clock_;
  std::function<bool(const std::string& sandbox)> probe_;
  std::map<std::string, Entry> sandboxes_;
  rpc::Timer next_;
};

}  // namespace ka::kata
