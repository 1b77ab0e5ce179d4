// SPDX-License-Identifier: Apache-2.0
// Keeps threads in groups of resctrl: makes the groups, moves the threads, as often as others move
// them, and puts all back in the end.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "affinity/helper/rdt_records.hpp"
#include "affinity/helper/record_file.hpp"
#include "affinity/helper/resctrl.hpp"
#include "affinity/helper/thread_writer.hpp"
#include "affinity/helper/vmm_threads.hpp"
#include "base/log/log.hpp"
#include "base/result.hpp"
#include "policy/facts/rdt.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/plan/rdt.hpp"

namespace ka::helper {

/// The directory of a class is this and its name.
inline constexpr std::string_view kRdtPrefix = "kata-affinity.";

/// What is wanted of one class.
struct RdtGroup {
  std::string name;  ///< of the class: base::is_id()
  policy::RdtShares shares;
  std::vector<policy::ThreadKey> tasks;
};

struct RdtTaskState {
  policy::ThreadKey thread;
  std::string problem;  ///< why it is not in the group; empty: it is
};

struct RdtGroupState {
  std::string name;
  std::string schemata;  ///< as it is to be; empty: the machine cannot give it
  std::string problem;   ///< why there is no such group; empty: there is
  std::vector<RdtTaskState> tasks;
};

struct RdtState {
  std::vector<RdtGroupState> groups;
  std::string problem;  ///< why there can be no group at all; empty: nothing is in the way
};

class RdtKeeper {
 public:
  /// `resctrl` and `log` must outlive it.
  RdtKeeper(const Resctrl& resctrl, VmmThreads threads, RecordFile<RdtRecords> file,
            const log::Log& log);

  /// Takes over what an earlier helper recorded. Where that cannot be read, nothing is ever
  /// written: state() says why.
  void adopt();
  /// From now on there are these groups and no others of ours; none: all is put back. Names are
  /// unique, and so are threads.
  void keep(std::vector<RdtGroup> wanted);
  /// Reads all again, and repairs it.
  void check();

  /// Something of ours is there, or is to be: check() is needed.
  bool holds() const { return !wanted_.empty() || !records_.empty() || writer_.has_unsettled(); }
  /// Something failed that may succeed soon.
  bool is_unfinished() const { return is_unfinished_; }
  const std::filesystem::path& file() const { return file_.path(); }
  /// As the last check() found it.
  const RdtState& state() const { return state_; }

 private:
  /// A thread that is to be moved.
  struct Move {
    policy::ThreadKey thread;
    std::string name;  ///< of the class
    RdtTaskState* state;
  };
  using Targets = std::map<std::string, policy::plan::Schemata>;
  using Groups = std::map<std::string, policy::RdtShares>;

  void bring(const policy::plan::RdtFacts& facts);
  void report(const Groups& before) const;
  void lose(const base::Error& error);
  Targets targets(const policy::plan::RdtFacts& facts);
  void put_back(const Targets& targets);
  bool put_back(const policy::ThreadKey& thread, const RdtTask& task);
  bool remove(const std::string& name);
  void establish(Targets& targets, const policy::plan::RdtFacts& facts);
  base::Result<void> establish(const RdtGroup& group, const policy::plan::Schemata& schemata,
                               const policy::plan::RdtFacts& facts);
  base::Result<void> make(const RdtGroup& group, const policy::plan::RdtFacts& facts);
  base::Result<void> bring(const std::string& name, const policy::plan::Schemata& schemata);
  void place(const Targets& targets);
  void prepare(const std::string& name, RdtTaskState& task, std::vector<Move>& moves);
  void move(const Move& move);
  bool is_ours(const std::string& group) const;
  std::string explain(const base::Error& error) const;
  bool save();

  const Resctrl& resctrl_;
  VmmThreads threads_;
  ThreadWriter<RdtHome> writer_;
  RecordFile<RdtRecords> file_;
  const log::Log& log_;
  std::vector<RdtGroup> wanted_;
  RdtRecords records_;
  bool is_damaged_ = false;  ///< what an earlier helper wrote is not known
  bool is_unfinished_ = false;
  RdtState state_;
};

}  // namespace ka::helper
