// SPDX-License-Identifier: Apache-2.0
// Follows the directories that Kata's two runtimes keep of their sandboxes, for nodes where no
// other source reports containers. The Go runtime's persist.json has the containers with their
// CPUs; runtime-rs writes none of that: there is the sandbox, its VMM has to be found, and its
// cgroup has the mask.
//
// Both make a sandbox's directory before they start its VMM. From then until the VMM is there the
// shim stands for it: what the shim may use, the VMM is born with. That is reported also while
// another source reports containers, since only this one knows it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log/log.hpp"
#include "base/result.hpp"
#include "base/rpc/timer.hpp"
#include "policy/ledger/event.hpp"
#include "shim-ext/kata/named_vmm.hpp"
#include "shim-ext/watch/inotify.hpp"
#include "shim-ext/watch/stamp.hpp"

namespace ka::kata {

/// Must outlive the running of its io_context.
class KataWatch {
 public:
  /// A file that is only partly there is read again after this long, and a VMM that is not there
  /// yet searched again, up to kTries times; then only when something changes, and at each
  /// refresh().
  static constexpr std::chrono::milliseconds kPause{50};
  static constexpr int kTries = 200;
  /// A sandbox that could not be read for as long as that is shown as missed. Until then it is one
  /// that Kata is still making.
  static constexpr std::chrono::milliseconds kMissedAfter = kPause * kTries;

  struct Folders {
    std::filesystem::path go = "/run/vc/sbs";
    std::filesystem::path rust = "/run/kata";
    /// containerd's, where a sandbox's shim leaves its pid.
    std::filesystem::path tasks = "/run/containerd/io.containerd.runtime.v2.task";
  };

  /// Summary of one runtime's directory, for display.
  struct Extent {
    int read = 0;        ///< sandboxes
    std::string missed;  ///< what cannot be read, and why; empty: nothing is missed

    bool operator==(const Extent&) const = default;
  };

  struct Hooks {
    /// The result of one scan that had any, that completed what others before it could not, or that
    /// misses something else than the one before it.
    std::function<void(const std::vector<policy::ledger::Event>&)> report;
    /// A sandbox has a shim and no VMM yet; the event names the shim in the VMM's place.
    std::function<void(const policy::ledger::Event&)> starting;
    /// See find_named().
    std::function<base::Result<policy::ProcessId>(const NamedVmm&)> find_named;
    /// The shim of a sandbox by what it has left in `tasks`: quick, while its VMM is on its way.
    std::function<std::optional<policy::ProcessId>(const std::filesystem::path& tasks,
                                                   const std::string& sandbox)>
        shim_by_bundle;
    /// The shims that run, by sandbox. Asked when a sandbox is new and the quick way found none.
    std::function<std::map<std::string, policy::ProcessId>()> find_shims;
    /// The VMM that a shim has started. kGone: there is none yet. Any other error: that cannot be
    /// seen.
    std::function<base::Result<policy::ProcessId>(const policy::ProcessId& shim)> vmm_of_shim;
    /// A sandbox that was reported has a VMM that is not known to have ended.
    std::function<bool(const std::string& sandbox)> has_vmm;
  };

  /// `clock` and `log` must outlive it. Reads nothing yet.
  KataWatch(boost::asio::io_context& io, const base::Clock& clock, Folders folders, Hooks hooks,
            const log::Log& log);

  /// Reads what changed. While paused it reports only that sandboxes start; the rest is reported
  /// afterwards.
  void refresh();
  void set_paused(bool paused);

  /// As the last scan found it.
  const Extent& extent(bool rust) const { return rust ? extents_.rust : extents_.go; }
  /// The last scan could list the directories, and read all that it is to report of each sandbox.
  bool is_complete() const { return listed_ && !incomplete_; }
  bool has_listed() const { return listed_; }
  /// Why changes are seen only at each refresh(); absent: they are noticed.
  const std::optional<base::Error>& late() const { return inotify_.trouble(); }
  /// A sandbox has a directory.
  bool knows(const std::string& sandbox) const { return sandboxes_.contains(sandbox); }

 private:
  struct Unread {
    base::Clock::Time since;
    base::Error error;  ///< kGone: what is to be read is not there
  };
  struct Sandbox {
    bool rust = false;
    std::optional<policy::ProcessId> shim;
    std::optional<watch::Stamp>
        read;  ///< the persist.json that was reported; of runtime-rs: its VMM was
    std::set<std::string> containers;
    std::optional<Unread> unread;
  };
  struct Extents {
    Extent go, rust;

    bool operator==(const Extents&) const = default;
  };
  using Events = std::vector<policy::ledger::Event>;

  std::vector<std::string> list(const std::filesystem::path& folder, bool rust,
                                std::set<std::string>& there);
  bool may_be_sandbox(const std::filesystem::path& entry) const;
  void keep(bool rust, std::set<std::string>& there);
  void find_shims(const std::vector<std::string>& fresh);
  void report_starting(const std::vector<std::string>& fresh);
  bool read_all(const std::set<std::string>& there, Events& events);
  base::Result<void> read(const std::string& id, Sandbox& sandbox, Events& events) const;
  base::Result<void> read_go(const std::string& id, Sandbox& sandbox, Events& events) const;
  base::Result<void> read_rust(const std::string& id, Sandbox& sandbox, Events& events) const;
  void record(const std::string& id, Sandbox& sandbox, const base::Result<void>& read) const;
  void drop_gone(const std::set<std::string>& there, Events& events);
  bool is_without_directory(const std::string& id, Sandbox& sandbox) const;
  bool update_extents();
  Extent count(bool rust) const;
  bool is_missed(const Sandbox& sandbox) const;
  void try_again();

  const base::Clock& clock_;
  Folders folders_;
  Hooks hooks_;
  const log::Log& log_;
  bool paused_ = false, listed_ = false;
  std::map<bool, base::Error> unlisted_;  ///< by `rust`: directories that could not be listed
  Extents extents_;
  bool incomplete_ = false;  ///< something was not read in the last scan, or is still to be
  int tries_ = 0;
  std::map<std::string, Sandbox> sandboxes_;
  watch::Inotify inotify_;
  rpc::Timer again_;
};

}  // namespace ka::kata
