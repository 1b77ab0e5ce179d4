// SPDX-License-Identifier: Apache-2.0
// The state of each pod on disk, for the next daemon: saved when it changes,
// retried when it could not be written.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "affinity/board/board.hpp"
#include "affinity/state/store.hpp"

namespace ka::registry {

/// Why the state of a pod on disk is not as it should be.
struct Unsaved {
  std::string reason;
  bool is_removed = false;  ///< the pod is gone, and its file cannot be removed

  bool operator==(const Unsaved&) const = default;
};

/// "the state of sandbox s1 is not on disk, retrying: No space left on device".
std::string describe(const std::string& pod, const Unsaved& unsaved);

class StateFiles {
 public:
  /// Both must outlive it.
  StateFiles(state::Store& store, board::Board& board) : store_(store), board_(board) {}

  /// The state of a pod as it is now, without its guest's; absent: there is no such pod. It is
  /// asked whenever one is written, since a copy of each would cost a busy node megabytes.
  using Describe = std::function<std::optional<state::Saved>(const std::string& pod)>;
  void describe_with(Describe describe) { describe_ = std::move(describe); }

  /// Saves a pod, with the requests to its guest. Notifies once for each reason that it cannot be
  /// written.
  void save(const std::string& pod);
  /// Saves a pod again after the requests to its guest have changed.
  void save_guest(const std::string& pod);
  void remove(const std::string& pod);
  /// Tries again what could not be written or removed, and writes again what others have removed.
  void retry();

  /// By pod.
  const std::map<std::string, Unsaved>& unsaved() const { return unsaved_; }

 private:
  void restore_missing();
  void write(const std::string& pod);
  void record(const std::string& pod, const base::Result<void>& done, bool is_removed);
  void record(const std::string& pod, const Unsaved& unsaved);

  state::Store& store_;
  board::Board& board_;
  Describe describe_;
  std::set<std::string> saved_;  ///< pods that were handed to save()
  std::map<std::string, Unsaved> unsaved_;
};

}  // namespace ka::registry
