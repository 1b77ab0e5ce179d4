// SPDX-License-Identifier: Apache-2.0
// The sources of events that live in the daemon: the container runtime by NRI, kubelet's state.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/daemon/container_files.hpp"
#include "affinity/daemon/guests.hpp"
#include "affinity/daemon/kata_source.hpp"
#include "base/clock.hpp"
#include "base/log/log.hpp"
#include "shim-ext/nri/listener.hpp"
#include "shim-ext/nri/plugin.hpp"
#include "shim-ext/watch/kubelet_watch.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::board {
class Board;
}
namespace ka::engine {
class Engine;
}

namespace ka::daemon {

/// Must outlive the running of its io_context.
class Sources final : private nri::Listener {
 public:
  /// How long a container runtime waits for us at most, with a lock that is node-wide.
  static constexpr std::chrono::milliseconds kBudget{50};

  struct Paths {
    std::filesystem::path nri_socket;     ///< empty: none
    std::filesystem::path kubelet_state;  ///< empty: none
    watch::KataWatch::Folders kata;
  };

  /// What a container has to do with from within.
  struct Inside {
    Guests& guests;
    ContainerFiles& files;
  };

  /// All references must outlive it. Reads kubelet's state, which is the first to know that a CPU
  /// has become exclusive, and names the sources that are awaited; the others speak after start().
  Sources(boost::asio::io_context& io, engine::Engine& engine, board::Board& board,
          const vmm::Roots& roots, const Paths& paths, const Inside& inside, const log::Log& log,
          const base::Clock& clock);

  /// To be called once, when the engine has adopted what was before.
  void start();

  /// Follows what changed without a word: now and then.
  void refresh();
  /// Someone wrote a sandbox's cgroup.
  void cgroups_written() { kata_.follow_masks(); }

 private:
  void before(const std::vector<policy::ledger::Event>& events) override;
  nri::Adjustment creating(const std::vector<policy::ledger::Event>& events,
                           const nri::Creation& creation) override;
  void starting(const std::vector<policy::ledger::Event>& events, const std::string& sandbox,
                const std::string& container, std::function<void()> go_on) override;
  void after(const std::vector<policy::ledger::Event>& events, const std::string& sandbox) override;
  void synchronized(const std::vector<policy::ledger::Event>& events) override;
  std::optional<policy::ContainerFacts> known(std::string_view sandbox,
                                              std::string_view container) const override;
  void answered(std::string_view method, std::chrono::nanoseconds took) override;
  void connected(const std::string& runtime) override;
  void disconnected(const std::string& reason) override;

  void take(const policy::ledger::Event& event);

  boost::asio::io_context& io_;
  engine::Engine& engine_;
  board::Board& board_;
  vmm::Roots roots_;
  std::filesystem::path nri_socket_;
  Inside inside_;
  const log::Log& log_;
  const base::Clock& clock_;
  /// Set while a container runtime waits for an answer.
  std::optional<std::chrono::steady_clock::time_point> answer_by_;
  std::optional<watch::KubeletWatch> kubelet_;
  KataSource kata_;
  std::optional<nri::Plugin> runtime_;
};

}  // namespace ka::daemon
