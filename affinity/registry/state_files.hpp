// SPDX-License-Identifier: Apache-2.0
// The state of each pod on disk, for the next daemon: saved when it changes,
// retried when it could not be written.
#pragma once

#include <map>
#include <string>

#include "affinity/board/board.hpp"
#include "affinity/state/store.hpp"

namespace ka::registry {

class StateFiles {
 public:
  /// Both must outlive it.
  StateFiles(state::Store& store, board::Board& board) : store_(store), board_(board) {}

  /// Saves a pod, with the requests to its guest. Notifies once for each reason that it cannot be
  /// written.
  void save(state::Saved saved);
  /// Saves a pod again after the requests to its guest have changed.
  void save_guest(const std::string& pod);
  void remove(const std::string& pod);
  /// Tries again what could not be written or removed.
  void retry();

  /// By pod: why its state is not on disk.
  const std::map<std::string, std::string>& unsaved() const { return unsaved_; }

 private:
  void write(const std::string& pod);
  void record(const std::string& pod, const base::Result<void>& done);

  state::Store& store_;
  board::Board& board_;
  std::map<std::string, state::Saved> saved_;   ///< by pod: as last handed to save()
  std::map<std::string, std::string> unsaved_;  ///< by pod: why its state is not written
};

}  // namespace ka::registry
