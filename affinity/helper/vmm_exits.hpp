// SPDX-License-Identifier: Apache-2.0
// Calls back when a VMM ends: the runtime removes its cgroup then, and cannot while ours is in it.
// On a thread of its own: what the helper does otherwise may wait for systemd for seconds.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "affinity/helper/vmm_threads.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::helper {

class VmmExits {
 public:
  /// Called on that thread when a VMM has ended; again if it is to be watched still.
  using Ended = std::function<void(const policy::ThreadKey& vmm)>;

  VmmExits(VmmThreads threads, Ended ended);
  VmmExits(const VmmExits&) = delete;
  VmmExits& operator=(const VmmExits&) = delete;
  ~VmmExits();

  /// Watches these VMMs, and no others. One that has ended already is reported, too; what cannot
  /// be watched now is tried again with the next call.
  void watch(std::vector<policy::ThreadKey> vmms);

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;

  void watch_only(const std::vector<policy::ThreadKey>& vmms);
  void watch_one(const policy::ThreadKey& vmm);
  void handle_exit(const policy::ThreadKey& vmm);

  VmmThreads threads_;
  Ended ended_;
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::map<policy::ThreadKey, Descriptor> watched_;  ///< pidfds; of that thread
  std::thread thread_;
};

}  // namespace ka::helper
