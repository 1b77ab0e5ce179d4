// SPDX-License-Identifier: Apache-2.0
// The way from mode = "managed" to another one: containers that an earlier daemon gave CPUs may run
// on all of them again, and use the memory of all nodes, once the runtime has reported them. A
// kubelet with the static policy writes all cpusets itself, but no memory nodes.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "affinity/managed/file.hpp"
#include "shim-ext/nri/allocator.hpp"

namespace ka::managed {

class Release final : public nri::Allocator {
 public:
  /// All that a container may use. No CPUs: they are not ours to give back.
  struct Machine {
    policy::CpuSet cpus;
    policy::NodeSet mems;
  };

  /// Null: `file` has nothing to give back. The file is removed when the runtime has got the first
  /// answer: with its next call. The error: it cannot be read, or who gives CPUs now cannot be read
  /// from `kubelet_state`, the path of kubelet's state file; then nothing may be given back.
  static base::Result<std::unique_ptr<Release>> open(AllocationFile file,
                                                     const std::filesystem::path& kubelet_state,
                                                     Machine machine);

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
  void apply() override;
  void apply_at_once() override;

 private:
  /// How far the runtime has got.
  ///
  /// | from       | to         | when                                                      |
  /// |------------|------------|-----------------------------------------------------------|
  /// | kReporting | kAnswered  | updates(): the answer to its report is on its way         |
  /// | kAnswered  | kReporting | synchronize(): the connection ended; it may not have come |
  /// | kAnswered  | kFinished  | any other call of the runtime: the answer has arrived     |
  enum class State { kReporting, kAnswered, kFinished };

  Release(AllocationFile file, const std::vector<policy::managed::Saved>& saved, Machine machine);

  void finish();

  AllocationFile file_;
  std::set<std::string> bound_;      ///< containers that were given CPUs, until the answer arrived
  std::set<std::string> mem_bound_;  ///< of these, whose memory was bound
  std::set<std::string> released_;   ///< in the answer, until it is in the ledger
  std::set<std::string> unsent_;     ///< of these, what is not in an answer yet
  State state_ = State::kReporting;
  Machine machine_;
};

}  // namespace ka::managed
