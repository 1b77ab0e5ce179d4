// SPDX-License-Identifier: Apache-2.0
// Follows kubelet's cpu_manager_state: kubelet replaces the file by rename at each admission.
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/log/log.hpp"
#include "policy/ledger/event.hpp"
#include "shim-ext/watch/inotify.hpp"
#include "shim-ext/watch/stamp.hpp"

namespace ka::watch {

/// Must outlive the running of its io_context.
class KubeletWatch {
 public:
  using Tell = std::function<void(const policy::ledger::Event&)>;
  /// How it stands with the file: whether what it says counts, and in words.
  using Stand = std::function<void(bool up, const std::string& text)>;

  /// `log` must outlive it. Reads nothing yet.
  KubeletWatch(boost::asio::io_context& io, std::filesystem::path file, Tell tell, Stand stand,
               const log::Log& log);

  /// Tells what the file says when it is not the file that was read last; costs one stat when it
  /// is. A file that went away takes back what it said; one that cannot be read says nothing new,
  /// and is tried again each time unless it is damaged.
  void refresh();

 private:
  void read();
  void notice();

  std::filesystem::path file_;
  Tell tell_;
  Stand stand_;
  const log::Log& log_;
  std::optional<Stamp> stamp_;  ///< of the last look; all zero: there was no file
  Inotify inotify_;
  bool unread_ = false;   ///< reading it failed, and may not fail again
  bool watched_ = false;  ///< the file's directory
};

}  // namespace ka::watch
