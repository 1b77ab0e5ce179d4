// SPDX-License-Identifier: Apache-2.0
// mode = "managed": the books of the node (policy/managed) with what they bring about. Every change
// is on disk before anyone learns of it. For the ledger it is who owns which CPU, as kubelet's file
// is elsewhere; the line does the rest for VMs. Cpusets of other containers are written by the
// runtime, which gets them in its answers, or by us where no answer can carry them.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "affinity/board/board.hpp"
#include "affinity/managed/cpusets.hpp"
#include "affinity/managed/file.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "policy/managed/books.hpp"
#include "policy/managed/trial.hpp"
#include "shim-ext/nri/allocator.hpp"
#include "shim-ext/source/node.hpp"

namespace ka::managed {

class Manager final : public nri::Allocator {
 public:
  /// Calls back when the loop comes round again.
  using Later = std::function<void(std::function<void()>)>;

  /// How long one turn of the loop writes cgroups: systemd takes its time for each, and runtimes
  /// wait for answers meanwhile.
  static constexpr std::chrono::milliseconds kTurn{20};

  /// How long the runtime may take to write what an answer gave it.
  static constexpr std::chrono::seconds kGrace{5};

  /// All that is referred to outlives it.
  struct Dependencies {
    source::Node& node;
    board::Board& board;
    const base::Clock& clock;
    Later later;
    std::filesystem::path sys;  ///< where sysfs is mounted
  };

  /// `books`: empty ones.
  Manager(policy::managed::Books books, AllocationFile file, Cpusets cpusets,
          const Dependencies& with);

  /// Takes the allocations of an earlier daemon over, and reports who owns which CPU by them:
  /// before anything is written. The error: they cannot be read, and containers keep what they run
  /// on.
  base::Result<void> start();

  base::Result<void> create(const nri::Described& container) override;
  base::Result<void> resize(const std::string& container, std::int64_t quota,
                            std::int64_t period) override;
  void end(const std::string& container) override;
  void synchronize(const std::vector<nri::Described>& all,
                   const std::set<std::string>& sandboxes) override;
  bool adopt(const nri::Described& container) override;
  void forget(const std::vector<policy::ledger::Event>& events) override;
  nri::Updates updates() override;
  void complete(std::vector<policy::ledger::Event>& events) override;
  void set_updater(nri::Updater* updater) override;
  void apply() override;
  void apply_at_once() override;

  /// An operator gives containers of a pod another class: all that have CPUs to give, or one by its
  /// name. kNotFound, or kConflict with the reason: nothing has changed.
  base::Result<void> change(const std::string& sandbox, const std::optional<std::string>& name,
                            policy::managed::CpuUse use);
  /// What a running container's pod asks for by annotation now; absent: nothing. kNotFound;
  /// kUnavailable: it cannot be recorded. What it cannot have is in its entry.
  base::Result<void> request(const std::string& sandbox, const std::string& name,
                             const std::optional<std::string>& requested);
  /// What would become of a pod. Nothing changes.
  policy::managed::Trial try_pod(std::vector<policy::managed::TrialContainer> containers) const;
  /// A container whose cgroup allows something else than it is to.
  struct Mismatch {
    AllowedSets actual, wanted;
  };
  /// Of the container's cgroup. Absent for a container in a VM, and for one whose cgroup is as it
  /// is to be. The error: it cannot be read.
  base::Result<std::optional<Mismatch>> mismatch(const std::string& container) const;
  /// The last answer is so young that the runtime may still be writing it.
  bool is_settling() const { return answered_ && with_.clock.now() < *answered_ + kGrace; }
  /// CPUs of the machine came or went.
  void change_machine(const policy::Topology& topology);

  const policy::managed::Books& books() const { return books_; }
  /// Why the last allocation is not on disk; empty: it is.
  const std::string& unsaved() const { return unsaved_; }

 private:
  /// A container that the runtime has, or that runs all the same.
  struct Running {
    policy::CpuSet written;  ///< what the runtime has, as far as is known
    policy::NodeSet mems;    ///< the same of memory nodes
  };

  using Change = std::function<void(policy::managed::Books&)>;

  /// What the runtime has, and what runs all the same.
  struct Listing {
    std::vector<policy::managed::Listed> containers;
    std::set<std::string> sandboxes;
    std::map<std::string, Running> running;
  };

  policy::managed::Books upcoming(bool growth_held) const;
  policy::managed::Locality locality_of(const nri::Described& container) const;
  policy::CpuSet owned_elsewhere() const;
  base::Result<void> commit(const Change& change);
  base::Result<void> adopt(policy::managed::Books next);
  base::Result<void> save(const policy::managed::Books& next);
  void report_changes(const policy::managed::Books& before);
  std::optional<policy::ledger::Event> owners();
  void stamp(policy::ledger::ContainerSeen& seen);
  void add_others(std::vector<policy::ledger::Event>& events) const;
  policy::NodeSet mems_of(const std::string& container) const;
  void add_unlisted(Listing& listing);
  std::set<std::string> ended_unlisted() const;
  bool is_running(const std::string& container) const;
  std::deque<std::string> mismatched() const;
  void apply_to_ledger();
  void write_mismatched();
  void write_cpusets();
  void write_cpuset(const std::string& container);

  policy::managed::Books books_;
  AllocationFile file_;
  Cpusets cpusets_;
  Dependencies with_;
  std::map<std::string, Running> running_;
  std::set<std::string> unlisted_;  ///< containers that run and that the runtime has lost
  std::map<std::string, policy::CpuSet> foreign_;  ///< containers whose CPUs someone else set
  std::optional<policy::ledger::KubeletSeen> reported_;
  policy::NodeSet memory_nodes_;  ///< those that have memory
  std::string unsaved_;
  nri::Updater* updater_ = nullptr;            ///< null: cgroups are written by us
  std::optional<base::Clock::Time> answered_;  ///< when updates() had some last
  std::deque<std::string>
      unwritten_;               ///< containers whose cgroups are to be written, in this order
  bool is_turn_due_ = false;    ///< write_cpusets() is called when the loop comes round
  bool is_unfinished_ = false;  ///< the line has taken CPUs away, and not yet given any
};

}  // namespace ka::managed
