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

  struct Folders {
    std::filesystem::path go = "/run/vc/sbs";
    std::filesystem::path rust = "/run/kata";
    /// containerd's, where a sandbox's shim leaves its pid.
    std::filesystem::path tasks = "/run/containerd/io.containerd.runtime.v2.task";
  };

  /// Summary of the directories, for display.
  struct Extent {
    int go = 0;    ///< sandboxes of the Go runtime
    int rust = 0;  ///< of runtime-rs

    bool operator==(const Extent&) const = default;
  };

  struct Hooks {
    /// The result of one scan that had any, or that completed what others before it could not.
    std::function<void(const std::vector<policy::ledger::Event>&)> report;
    /// A sandbox has a shim and no VMM yet; the event names the shim in the VMM's place.
    std::function<void(const policy::ledger::Event&)> starting;
    /// The process of this number, where it is a VMM at this moment.
    std::function<std::optional<policy::ProcessId>(int pid)> vmm_at;
    /// The shim of a sandbox by what it has left in `tasks`: quick, while its VMM is on its way.
    std::function<std::optional<policy::ProcessId>(const std::filesystem::path& tasks,
                                                   const std::string& sandbox)>
        shim_by_bundle;
    /// The shims that run, by sandbox. Asked when a sandbox is new and the quick way found none.
    std::function<std::map<std::string, policy::ProcessId>()> find_shims;
    /// The VMM that a shim has started; absent: there is none yet.
    std::function<std::optional<policy::ProcessId>(const policy::ProcessId& shim)> vmm_of_shim;
  };

  /// `clock` and `log` must outlive it. Reads nothing yet.
  KataWatch(boost::asio::io_context& io, const base::Clock& clock, Folders folders, Hooks hooks,
            const log::Log& log);

  /// Reads what changed. While paused it reports only that sandboxes start; the rest is reported
  /// afterwards.
  void refresh();
  void set_paused(bool paused);

  Extent extent() const;
  /// The last scan could list the directories, and read all that it is to report of each sandbox.
  bool is_complete() const { return listed_ && !incomplete_; }

 private:
  struct Sandbox {
    bool rust = false;
    std::optional<policy::ProcessId> shim;
    std::optional<watch::Stamp>
        read;  ///< the persist.json that was reported; of runtime-rs: its VMM was
    std::set<std::string> containers;
  };
  using Events = std::vector<policy::ledger::Event>;

  std::vector<std::string> list(const std::filesystem::path& folder, bool rust,
                                std::set<std::string>& there);
  void keep(bool rust, std::set<std::string>& there, const base::Error& error);
  void find_shims(const std::vector<std::string>& fresh);
  void report_starting(const std::vector<std::string>& fresh);
  bool read(const std::string& id, Sandbox& sandbox, Events& events);
  bool read_go(const std::string& id, Sandbox& sandbox, Events& events);
  bool read_rust(const std::string& id, Sandbox& sandbox, Events& events) const;
  void drop_gone(const std::set<std::string>& there, Events& events);
  void try_again();

  Folders folders_;
  Hooks hooks_;
  const log::Log& log_;
  bool paused_ = false, listed_ = false;
  bool incomplete_ = false;  ///< something was not read in the last scan, or is still to be
  int tries_ = 0;
  std::map<std::string, Sandbox> sandboxes_;
  watch::Inotify inotify_;
  rpc::Timer again_;
};

}  // namespace ka::kata
