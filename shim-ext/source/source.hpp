// SPDX-License-Identifier: Apache-2.0
// A source of events: it reports what it learns to a Node, and decides nothing. Which sources a
// daemon has is a table (affinity/daemon/source_table.cpp).
#pragma once

#include <functional>

#include "base/deadline.hpp"

namespace ka::source {

/// What happens outside a source and may be news to it.
enum class Notice {
  kRuntimeConnected,     ///< the container runtime reports its pods from now on
  kRuntimeDisconnected,  ///< it does not
  kRuntimeReported,      ///< it has reported all pods and containers that it has
  kCgroupWritten,        ///< another program wrote a sandbox's cgroup
  kLineRan,              ///< plans, masks or memory of a sandbox may have changed
};

/// Calls come from the loop, one at a time. Must outlive the running of its io_context.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  /// Called once, when the node has adopted the state of before. What is cheap to read and decides
  /// what may be written then is read in the constructor.
  virtual void start() = 0;

  /// Reports what changed without a notification: called at each drift check.
  virtual void refresh() = 0;

  /// Another source is about to answer a client that waits: reports at once what is already there
  /// to be read, for Node::narrow() by `deadline`.
  virtual void catch_up(const base::Deadline& deadline) { (void)deadline; }

  /// verify is about to compare the sources: queries what is not reported by itself, and
  /// calls `answered` once, also where no answer came. Bounded by a second.
  virtual void query_for_verify(const std::function<void()>& answered) { answered(); }

  /// May be called from within the node: a source that calls the node upon kLineRan does so later.
  virtual void notify(Notice notice) { (void)notice; }
};

/// The other sources of a node.
class Peers {
 public:
  Peers() = default;
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  virtual ~Peers() = default;

  /// Every source catches up.
  virtual void catch_up(const base::Deadline& deadline) = 0;
  /// Every source is notified.
  virtual void notify(Notice notice) = 0;
};

}  // namespace ka::source
