// SPDX-License-Identifier: Apache-2.0
// What can be known of Kata's sandboxes without a word from a container runtime: by the folders
// that Kata keeps, and by the cgroup that it writes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/log/log.hpp"
#include "shim-ext/watch/bundle_watch.hpp"
#include "shim-ext/watch/kata_watch.hpp"
#include "vmm/facts/facts.hpp"
#include "vmm/threads.hpp"

namespace ka::board {
class Board;
}
namespace ka::engine {
class Engine;
struct SandboxView;
}  // namespace ka::engine

namespace ka::daemon {

/// Must outlive the running of its io_context.
class KataSource {
 public:
  /// `engine`, `board` and `log` must outlive it.
  KataSource(boost::asio::io_context& io, engine::Engine& engine, board::Board& board,
             vmm::Roots roots, const watch::KataWatch::Folders& folders, const log::Log& log);

  /// Follows what changed without a word: now and then.
  void refresh();

  /// Says nothing of containers while someone else tells of them: that is earlier, and knows more.
  void rest(bool rests);

  /// The container runtime will tell nothing any more: what it told of containers before counts
  /// until a sandbox's mask shows that it is not so any more.
  void take_over() { takes_over_ = true; }

  /// Someone wrote a sandbox cgroup, or told of containers: reads the masks of sandboxes of which
  /// nothing else is known.
  void follow_masks();

 private:
  bool look_at_bundle(const watch::Bundle& bundle, watch::BundleWatch::Effort effort);
  bool narrow_newborn(const watch::Bundle& bundle, const vmm::FoundShim& shim);
  void report_newborn(const watch::Bundle& bundle, const vmm::FoundShim& shim);
  void narrow_shim(const policy::ledger::Event& event);
  void take(const std::vector<policy::ledger::Event>& events);
  void follow_mask(const engine::SandboxView& view, std::vector<policy::ledger::Event>& news);
  void drop_masks();
  void show_extent();
  void show_proxies();

  engine::Engine& engine_;
  board::Board& board_;
  vmm::Roots roots_;
  bool rests_ = false, takes_over_ = false;
  std::set<std::string> masks_;  ///< sandboxes of which the mask was told
  watch::KataWatch watch_;
  watch::BundleWatch bundles_;
};

}  // namespace ka::daemon
