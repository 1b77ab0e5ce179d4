// SPDX-License-Identifier: Apache-2.0
// The state files: what a restarted daemon must know and cannot read from the kernel. One small
// JSON file a pod in a directory below /run, since a reboot ends every sandbox. They are
// plain text.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/state/directory.hpp"
#include "base/fd.hpp"
#include "base/log/log.hpp"
#include "base/result.hpp"
#include "policy/facts/guest.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/ledger/ledger.hpp"
#include "policy/ledger/start_gate.hpp"
#include "policy/plan/guest_numbers.hpp"
#include "policy/plan/plan.hpp"

namespace ka::state {

/// The largest state file. What sources may report of one sandbox (docs/understand/limits.md) stays
/// below it, and what is above it is not written, since it could not be read.
inline constexpr std::size_t kMaxFile = std::size_t{64} << 20;

/// The mask that a process would have without us, as its first thread had it when we first saw it.
struct Original {
  std::uint64_t start_time = 0;  ///< of the process: distinguishes it from a reused pid
  bool everywhere = true;        ///< it could use all that its cgroup allowed
  policy::CpuSet cpus;           ///< else

  bool operator==(const Original&) const = default;
};

/// A cgroup whose cpuset we wrote (cgroup = "manage").
struct SavedCgroup {
  std::string directory;
  policy::CpuSet theirs;  ///< what others wrote there; empty: nothing
  policy::CpuSet ours;    ///< what we wrote there last
  /// What it was about to get, saved before the write: after kill -9 it may have either. As `ours`
  /// where no write is under way.
  policy::CpuSet next{};

  bool operator==(const SavedCgroup&) const = default;
};

/// An interrupt of a passed-through device that we sent somewhere.
struct SavedInterrupt {
  int number = 0;
  std::string name;       ///< of its handler, with which it is the same interrupt
  policy::CpuSet theirs;  ///< the CPUs it had without us, as we first saw it
  policy::CpuSet ours;    ///< those that we gave it last
  /// That it was about to get, saved before the write: after kill -9 it may have either.
  policy::CpuSet next{};

  bool operator==(const SavedInterrupt&) const = default;
};

/// The nice value of a thread that we changed.
struct SavedNice {
  policy::ThreadKey key;
  int theirs = 0;      ///< what it had without us, as we first saw it
  std::set<int> ours;  ///< what we wrote since, or were about to

  bool operator==(const SavedNice&) const = default;
};

/// The same of a cgroup's weight of block I/O.
struct SavedIoWeight {
  std::string directory;
  int theirs = 0;
  std::set<int> ours;

  bool operator==(const SavedIoWeight&) const = default;
};

/// The same of its limits for one disk (policy::IoLimits).
struct SavedIoMax {
  std::string directory, disk;
  std::string theirs;
  std::set<std::string> ours;

  bool operator==(const SavedIoMax&) const = default;
};

/// What resource classes came to.
struct SavedClasses {
  std::vector<SavedNice> nices;  ///< by thread
  std::optional<SavedIoWeight> io_weight;
  std::vector<SavedIoMax> io_max = {};  ///< by disk

  bool empty() const { return nices.empty() && !io_weight && io_max.empty(); }
  bool operator==(const SavedClasses&) const = default;
};

/// Requests to a guest, and the known order of its vCPUs.
struct SavedGuest {
  policy::GuestWrites writes;
  policy::plan::PlugHistory plugged;

  bool operator==(const SavedGuest&) const = default;
};

struct Saved {
  policy::ledger::PodRecord pod;
  std::optional<policy::plan::SandboxPlan> plan;  ///< the last one: which vCPU serves which CPU
  std::map<int, Original> originals;              ///< by pid
  bool released = false;
  bool left_alone = false;  ///< and every mask has been restored
  std::optional<SavedCgroup> cgroup;
  std::vector<SavedInterrupt> interrupts;  ///< by number
  SavedClasses classes;
  SavedGuest guest;
  std::optional<policy::ProcessId> ended{};  ///< the pod's VMM that has ended, and is named still

  bool operator==(const Saved&) const = default;
};

/// The text form of one pod's state, with the version of the format and the boot it belongs to.
std::string to_text(const Saved& saved, const std::string& boot_id);

/// kInvalid for a text that is damaged or of a newer version; kGone for one of another boot (see
/// base::check_boot()).
base::Result<Saved> from_text(std::string_view text, const std::string& boot_id);

/// What load() found that it had not returned before.
struct Loaded {
  std::vector<Saved> pods;  ///< the file that was written last comes first
  std::vector<policy::ledger::LostState>
      lost;  ///< all that is there and could not be read, each time
};

class Store {
 public:
  /// A directory that was claimed, with its lock. `boot_id` is the content of
  /// /proc/sys/kernel/random/boot_id; `log` must outlive the store.
  Store(std::filesystem::path directory, std::string boot_id, const log::Log& log,
        base::Fd lock = {});

  /// Reads every file that was not read before. What is damaged, of a newer version or has another
  /// pod's name is renamed to "<name>.unreadable" and logged; what belongs to another boot is
  /// removed and logged. Files that an earlier daemon set aside, and that are not resolved yet, are
  /// lost too. Call again while something is lost: reading may only have failed for the moment.
  Loaded load();

  bool has_lost() const { return !lost_.empty(); }

  /// What is damaged does not matter any more: "<name>.unreadable" becomes "<name>.obsolete".
  void dismiss_damaged();
  /// What cannot be read for the moment may be overwritten.
  void give_up_unread();

  /// Replaces the file of a pod; writes nothing when it holds the same already. kInvalid: it would
  /// be larger than can be read again. kUnavailable: the pod has a file that
  /// cannot be read for the moment, and may hold more than is known now. Any other error: it cannot
  /// be written, or others have put something in the directory's place that may not be used.
  base::Result<void> save(const Saved& saved);
  base::Result<void> remove(const std::string& pod);

  /// Pods that have a file, by load() and save().
  std::vector<std::string> pods() const;

  /// Pods whose files another program has removed, with a message: to be saved again. One stat
  /// where nothing in the directory has changed. Any error: the directory may not be used.
  base::Result<std::vector<std::string>> find_missing();

 private:
  /// A file with the name that an earlier version gave it.
  struct Former {
    std::string name;
    Saved saved;
  };
  struct Found {
    Loaded loaded;
    std::vector<Former> former;
  };

  base::Result<void> ensure_directory();
  void record_missing(const std::vector<std::string>& names);
  bool is_unread(const std::string& pod) const;
  void load_one(const std::string& name, Found& found);
  void accept(const std::string& name, const std::string& text, Saved saved, Found& found);
  void accept_former(Former former, Loaded& loaded);
  void drop(const std::string& name, const std::string& why);
  void move_to_own_name(const std::string& name, const std::string& own);
  void set_aside(const std::string& name, const std::string& why);
  void lose(policy::ledger::LostState lost);

  Directory directory_;
  std::string boot_id_;
  const log::Log& log_;
  /// By pod: hash of the text in its file; 0: to be written again.
  std::map<std::string, std::size_t> written_;
  std::map<std::string, policy::ledger::LostState> lost_;  ///< by file
};

/// The name of a pod's state file: the characters of an id (base::is_id()) as they are, all else as
/// %XX. No two pods share one, and with any id there is room for the endings that mark a file
/// (NAME_MAX).
std::string file_name(const std::string& pod);
/// The pod whose file has this name, also as versions wrote it for which "." was %2E; empty for any
/// other name.
std::string pod_of_file(std::string_view name);

}  // namespace ka::state
