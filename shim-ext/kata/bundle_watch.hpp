// SPDX-License-Identifier: Apache-2.0
// Follows the directories (bundles) that containerd makes for its tasks, to see a sandbox's shim as
// soon as it runs: what the shim may use, its VMM is born with.
//
// containerd makes the directory, writes config.json there, and runs the shim's program with
// `start`, which starts the shim itself and leaves its pid in shim.pid; all that is before the shim
// is asked for anything (core/runtime/v2/bundle.go, pkg/shim/shim.go; both of Kata's runtimes write
// the file).
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/rpc/timer.hpp"
#include "shim-ext/kata/bundle.hpp"
#include "shim-ext/watch/inotify.hpp"
#include "vmm/threads.hpp"

namespace ka::kata {

/// Must outlive the running of its io_context.
class BundleWatch {
 public:
  /// A change in a directory is handled at once. A shim that leaves no pid there is searched among
  /// all processes, this long after the directory was seen and then after each search.
  static constexpr std::array<std::chrono::milliseconds, 5> kSearches{
      std::chrono::milliseconds(10), std::chrono::milliseconds(30), std::chrono::milliseconds(100),
      std::chrono::milliseconds(300), std::chrono::milliseconds(1000)};
  /// One search is for all directories that wait. The next one begins this many times as long after
  /// it as it took, however many directories appear: others use the loop, too.
  static constexpr int kRest = 4;

  struct Found {
    Bundle bundle;
    policy::ProcessId shim;  ///< one of Kata's
  };

  struct Hooks {
    /// The shim of a bundle by what its directory has: a few reads.
    std::function<vmm::FoundShim(const Bundle& bundle)> shim_in_bundle;
    /// All shims that run, by the processes of the node: expensive.
    std::function<vmm::StartingShims()> starting_shims;
    /// Handles shims that were found. The result: directories of which nothing more is to be done;
    /// the others come again.
    std::function<std::set<std::filesystem::path>(const std::vector<Found>& found)> handle;
  };

  /// `clock` must outlive it. `tasks`: containerd's directory, which has one for each of its
  /// namespaces. Reads nothing yet.
  BundleWatch(boost::asio::io_context& io, const base::Clock& clock, std::filesystem::path tasks,
              Hooks hooks);

  /// Checks new bundles, and those whose shim has not been found. Those that are
  /// there at the first call are not searched among processes: their sandboxes run.
  void refresh();
  /// Why changes are seen only at each refresh(); absent: they are noticed.
  const std::optional<base::Error>& late() const { return inotify_.trouble(); }

 private:
  struct Entry {
    Bundle bundle;
    bool is_read = false;  ///< its config.json
    std::size_t searches = 0;
    std::optional<base::Clock::Time> due;  ///< of the next search; absent: there is none
  };

  void list(const std::filesystem::path& space, std::set<std::filesystem::path>& there);
  void begin(const std::filesystem::path& directory);
  void probe(const vmm::StartingShims& running);
  vmm::FoundShim find(Entry& entry, const vmm::StartingShims& running) const;
  void search();
  void schedule(Entry& entry) const;
  void await_next();

  const base::Clock& clock_;
  std::filesystem::path tasks_;
  Hooks hooks_;
  watch::Inotify inotify_;
  bool started_ = false;
  /// By directory; nothing where no more is to be done.
  std::map<std::filesystem::path, std::optional<Entry>> bundles_;
  base::Clock::Time resting_until_;
  rpc::Timer next_;
};

}  // namespace ka::kata
