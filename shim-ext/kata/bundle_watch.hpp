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
#include <memory>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "base/rpc/timer.hpp"
#include "shim-ext/kata/bundle.hpp"
#include "shim-ext/watch/inotify.hpp"

namespace ka::kata {

/// Must outlive the running of its io_context.
class BundleWatch {
 public:
  /// A change in a directory is handled at once. A shim that leaves no pid there is looked
  /// for among all processes, this long after the directory was seen and then after each attempt.
  static constexpr std::array<std::chrono::milliseconds, 5> kSearches{
      std::chrono::milliseconds(10), std::chrono::milliseconds(30), std::chrono::milliseconds(100),
      std::chrono::milliseconds(300), std::chrono::milliseconds(1000)};

  enum class Effort {
    kBundle,  ///< what the directory has
    kNode,    ///< all processes of the node, too: expensive
  };
  /// Searches the shim of a bundle's sandbox, and handles it. True: nothing
  /// more is to be done, or it is no shim of ours.
  using Probe = std::function<bool(const Bundle& bundle, Effort effort)>;

  /// `clock` must outlive it. `tasks`: containerd's directory, which has one for each of its
  /// namespaces. Reads nothing yet.
  BundleWatch(boost::asio::io_context& io, const base::Clock& clock, std::filesystem::path tasks,
              Probe probe);

  /// Checks new bundles, and those whose shim has not been found. Those that are
  /// there at the first call are not searched among processes: their sandboxes run.
  void refresh();

 private:
  struct Entry {
    Entry(boost::asio::io_context& io, const base::Clock& clock) : again(io, clock) {}

    Bundle bundle;
    bool is_read = false;  ///< its config.json
    std::size_t searches = 0;
    rpc::Timer again;
  };

  void list(const std::filesystem::path& space, std::set<std::filesystem::path>& there);
  void begin(const std::filesystem::path& directory);
  bool probe(Entry& entry, Effort effort);
  void try_again(Entry& entry);
  void probe_again(const std::filesystem::path& directory, Effort effort);

  boost::asio::io_context& io_;
  const base::Clock& clock_;
  std::filesystem::path tasks_;
  Probe probe_;
  watch::Inotify inotify_;
  bool started_ = false;
  /// By directory; nothing where no more is to be done.
  std::map<std::filesystem::path, std::unique_ptr<Entry>> bundles_;
};

}  // namespace ka::kata
