// SPDX-License-Identifier: Apache-2.0
// The state of each pod on disk, as it is to be found by the next daemon: saved when it changes,
// tried again when it could not be written.
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

  /// What is to be saved of a pod, with what its guest was told. Notifies once for each reason that
  /// it cannot be written.
  void save(state::Saved saved);
  /// Saves a pod again, since what its guest was told has changed.
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
