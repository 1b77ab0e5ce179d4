// SPDX-License-Identifier: Apache-2.0
// What kubelet's state was when it was read last, for a daemon that starts while kubelet's file is
// not there: containers run on. One file beside the pods' state files.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace ka::kubelet {

class LastState {
 public:
  /// In the state directory `directory`, of the boot `boot_id`. Reads and writes nothing.
  LastState(const std::filesystem::path& directory, std::string boot_id)
      : path_(directory / "cpu_manager_state"), boot_id_(std::move(boot_id)) {}

  const std::filesystem::path& path() const { return path_; }

  /// What save() got. kGone: there is none, or it is of another boot. kInvalid: no file of ours.
  base::Result<std::string> load() const;
  /// `text`: kubelet's file.
  base::Result<void> save(const std::string& text) const;

 private:
  std::filesystem::path path_;
  std::string boot_id_;
};

}  // namespace ka::kubelet
