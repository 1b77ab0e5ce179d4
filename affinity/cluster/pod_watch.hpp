// SPDX-License-Identifier: Apache-2.0
// Keeps the node's pods up to date, in a thread of its own.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "affinity/cluster/api_server.hpp"
#include "affinity/cluster/view/pods.hpp"
#include "base/backoff.hpp"
#include "base/log/log.hpp"
#include "base/result.hpp"

namespace ka::cluster {

class PodWatch {
 public:
  /// Both must outlive it.
  PodWatch(const ApiServer& server, const log::Log& log) : server_(server), log_(log) {}

  /// Lists and watches for as long as the program runs; lists again only where the server has
  /// forgotten where the watch was. `sleep`: for that long, and a random part more.
  [[noreturn]] void run(const std::function<void(std::chrono::milliseconds)>& sleep);

  /// Without a list yet there are none.
  Pods pods() const;

 private:
  base::Result<void> list();
  base::Result<void> watch();
  base::Result<void> list_and_watch();
  base::Result<void> apply(std::string_view line);

  const ApiServer& server_;
  const log::Log& log_;
  mutable std::mutex mutex_;
  Pods pods_;
  bool is_outdated_ = true;    ///< list again
  ApiServer::Pause pause_{0};  ///< what the server asked for last
};

}  // namespace ka::cluster
