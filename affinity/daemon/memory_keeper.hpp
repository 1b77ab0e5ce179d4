// SPDX-License-Identifier: Apache-2.0
// Says which sandboxes' memory is to be looked at, and when: at once where its nodes changed, else
// now and then, the rarer the longer a look takes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <map>
#include <string>

#include "affinity/daemon/memory_worker.hpp"
#include "affinity/engine/views.hpp"
#include "base/process.hpp"

namespace ka::engine {
class Engine;
}

namespace ka::daemon {

/// Must outlive the running of its io_context.
class MemoryKeeper {
 public:
  /// `engine` must outlive it. `proc` and `sys` are where those are mounted.
  MemoryKeeper(boost::asio::io_context& io, engine::Engine& engine, std::filesystem::path proc,
               std::filesystem::path sys);

  /// Takes notice of what the engine tells. Called from within the engine, so whatever follows
  /// from it is done later.
  void notice(const engine::Happening& happening);

  /// Looks at one sandbox now: what held its memory may not any more.
  void look_again(const std::string& id);

  /// Looks at what is due.
  void refresh();

 private:
  /// What was last asked for a sandbox.
  struct Asked {
    policy::ProcessId vmm;
    policy::NodeSet mems;
    bool move = false;

    bool operator==(const Asked&) const = default;
  };
  struct Kept {
    Asked asked;
    std::chrono::steady_clock::time_point due;
    int failures = 0;  ///< moves, one after the other, after which memory was still elsewhere
  };

  void follow(const std::string& id);
  void ask(const std::string& id, const Asked& asked);
  void take(const std::string& id, engine::MemoryView view, std::chrono::nanoseconds took);

  boost::asio::io_context& io_;
  engine::Engine& engine_;
  std::map<std::string, Kept> kept_;
  MemoryWorker worker_;
};

}  // namespace ka::daemon
