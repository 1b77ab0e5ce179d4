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
#include "shim-ext/kubelet/last_state.hpp"
#include "shim-ext/source/node.hpp"
#include "shim-ext/watch/inotify.hpp"
#include "shim-ext/watch/stamp.hpp"

namespace ka::kubelet {

/// Must outlive the running of its io_context.
class KubeletWatch {
 public:
  struct Handlers {
    /// The file may have changed: to be polled.
    std::function<void()> changed;
    /// Status of the file: whether its content is in use, and a text.
    std::function<void(source::Status status)> status;
  };

  /// `last`: what the daemon before this one read. `log` must outlive it. Reads nothing yet.
  KubeletWatch(boost::asio::io_context& io, std::filesystem::path file, LastState last,
               Handlers handlers, const log::Log& log);

  /// The file is as poll() left it, and its next change will be noticed. One system call.
  bool is_current() const;
  /// The content of the file, if it differs from the one read last; otherwise costs two system
  /// calls. A file that cannot be read, or was removed while containers owned CPUs, is reported
  /// once, as the last good content, outdated; it is read again each time unless it is damaged.
  std::optional<policy::ledger::KubeletSeen> poll();
  /// Saves what poll() has read, for the daemon after this one.
  void keep();
  /// Why changes are seen only by poll(); absent: they are noticed.
  const std::optional<base::Error>& late() const { return inotify_.trouble(); }

 private:
  void recall();
  std::optional<policy::ledger::KubeletSeen> read();
  std::optional<policy::ledger::KubeletSeen> outdated();
  std::string instead() const;

  std::filesystem::path file_;
  LastState saved_;
  Handlers handlers_;
  const log::Log& log_;
  std::optional<watch::Stamp> stamp_;  ///< of the last poll; all zero: there was no file
  policy::ledger::KubeletSeen last_;   ///< that was read
  bool recalled_ = false;              ///< what the daemon before this one read
  bool lost_ = false;                  ///< and that cannot be read
  std::optional<std::string> unsaved_;
  bool save_fails_ = false;
  watch::Inotify inotify_;
  bool is_watched_ = false;  ///< the directory, since the last poll
  bool unread_ = false;      ///< it could not be read, and may be next time
};

}  // namespace ka::kubelet
