// SPDX-License-Identifier: Apache-2.0
// The container runtime of this node, asked through the CRI, one call at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/wait_limit.hpp"
#include "shim-ext/cri/messages.hpp"

namespace ka::cri {

/// Errors of calls: kGone: nothing listens at the socket, or there is no such pod or container;
/// kConflict: the runtime refused, or the call ended before its answer; kInvalid: not a response of
/// the CRI.
class Runtime {
 public:
  /// `wait_limit`: for each call. `clock` outlives it.
  Runtime(std::filesystem::path socket, const base::Clock& clock,
          std::function<base::WaitLimit()> wait_limit);

  const std::filesystem::path& socket() const { return socket_; }

  base::Result<Version> version() const;
  base::Result<Settings> settings() const;
  base::Result<std::vector<std::string>> images() const;
  /// Pods with all these labels; all pods where there are none.
  base::Result<std::vector<Pod>> pods(const Labels& labels) const;
  base::Result<std::vector<Container>> containers() const;
  base::Result<Resources> resources_of(const std::string& container) const;

  /// The pod's id.
  base::Result<std::string> run_pod(const PodConfig& pod, const std::string& handler) const;
  /// The container's id.
  base::Result<std::string> create_container(const std::string& pod_id,
                                             const ContainerConfig& container,
                                             const PodConfig& pod) const;
  base::Result<void> start_container(const std::string& id) const;
  /// Runs a program in a container until it ends. Its output; kConflict where it fails.
  base::Result<std::string> exec(const std::string& container,
                                 const std::vector<std::string>& words) const;
  /// Stops and removes a pod with its containers. One that is gone is removed.
  base::Result<void> remove_pod(const std::string& id) const;

 private:
  base::Result<std::string> call(const std::string& method, std::string message) const;
  template <typename Parse>
  auto query(const std::string& method, std::string message, Parse parse) const
      -> decltype(parse(std::string_view()));

  std::filesystem::path socket_;
  const base::Clock& clock_;
  std::function<base::WaitLimit()> wait_limit_;
};

}  // namespace ka::cri
