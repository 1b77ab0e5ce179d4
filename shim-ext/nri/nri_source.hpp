// SPDX-License-Identifier: Apache-2.0
// The container runtime as a source: what it is about to do is reported before it does it, what it
// has done afterwards.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/log/log.hpp"
#include "shim-ext/nri/listener.hpp"
#include "shim-ext/nri/plugin.hpp"
#include "shim-ext/source/node.hpp"
#include "shim-ext/source/source.hpp"

namespace ka::nri {

/// What is done for a container from within, beside the placing of its sandbox.
class Containers {
 public:
  Containers() = default;
  Containers(const Containers&) = delete;
  Containers& operator=(const Containers&) = delete;
  virtual ~Containers() = default;

  /// What is added to a container that the runtime is about to create.
  virtual Adjustment adjust(const CreateRequest& request) = 0;

  /// Calls `go_on` once the guest has the container on its vCPUs, or cannot be waited for any
  /// longer.
  virtual void await_guest(const std::string& sandbox, const std::string& container,
                           std::function<void()> go_on) = 0;

  /// The ledger has all containers that exist: what is kept of others can go.
  virtual void forget_gone() = 0;
};

class NriSource final : public source::Source, public Listener, private Updater {
 public:
  /// How long a container runtime waits for an answer at most, with a lock that is node-wide.
  static constexpr std::chrono::milliseconds kBudget{50};

  /// All of it outlives the source.
  struct Dependencies {
    boost::asio::io_context& io;
    source::Node& node;
    source::Peers& peers;
    Containers& containers;
    const log::Log& log;
    const base::Clock& clock;
    Allocator* allocator = nullptr;  ///< null: kubelet gives containers their CPUs
  };

  /// `socket`: the runtime's; connects to it after start(), for ever.
  NriSource(std::filesystem::path socket, Probe probe, const Dependencies& dependencies);

  void start() override;
  void refresh() override;

  void before(const std::vector<policy::ledger::Event>& events) override;
  base::Result<Adjustment> creating(const std::vector<policy::ledger::Event>& events,
                                    const CreateRequest& request) override;
  base::Result<Updates> updating(const std::vector<policy::ledger::Event>& events,
                                 const policy::ledger::ContainerSeen& update) override;
  Updates stopped(const std::string& container) override;
  Updates synchronizing(const std::vector<Described>& containers,
                        const std::set<std::string>& sandboxes) override;
  void starting(const std::vector<policy::ledger::Event>& events, const Described& container,
                std::function<void()> go_on) override;
  void after(const std::vector<policy::ledger::Event>& events, const std::string& sandbox) override;
  void synchronized(const std::vector<policy::ledger::Event>& events) override;
  void answered(std::string_view method, std::chrono::nanoseconds elapsed) override;
  void connected(const std::string& runtime, bool accepts_updates) override;
  void disconnected(const std::string& reason) override;
  void unseen(const std::map<std::string, std::string>& pods) override;

 private:
  void update(const Updates& updates, std::function<void()> done) override;
  std::vector<policy::ledger::Event> completed(std::vector<policy::ledger::Event> events) const;
  void set_status(source::Status status);
  void show_status();
  void refuse(const std::vector<policy::ledger::Event>& events);

  std::filesystem::path socket_;
  Probe probe_;
  Dependencies with_;
  std::optional<Plugin> plugin_;  ///< since start()
  bool was_connected_ = false;    ///< a runtime that had no NRI would have no socket
  source::Status status_;
};

}  // namespace ka::nri
