// SPDX-License-Identifier: Apache-2.0
// What a daemon needs before it can start: its settings, the machine, its sockets, its state.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "affinity/config/config.hpp"
#include "affinity/daemon/options.hpp"
#include "affinity/daemon/start_parts.hpp"
#include "affinity/host/cgroup.hpp"
#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/http/listen.hpp"
#include "base/result.hpp"
#include "policy/facts/topology.hpp"
#include "policy/managed/books.hpp"

namespace ka::daemon {

struct Prerequisites {
  config::Config config;
  policy::Topology topology;
  std::string boot_id;
  std::filesystem::path state_dir;
  base::Fd state_lock;
  http::UnixListener api;
  std::optional<http::UnixListener> reads;      ///< none where it is not asked for
  base::Fd metrics;                             ///< none where it is not asked for
  std::optional<policy::managed::Books> books;  ///< mode = "managed"
  std::optional<host::Cgroups> cgroups;         ///< for mode = "managed"; none where there are none
  StartParts parts;
};

/// Reads the settings alone, and prints the files that have them to standard output.
base::Result<void> check_config(const Options& options);

/// Reads, opens and claims all of it. The error says which could not be had. `clock` must outlive
/// the result.
base::Result<Prerequisites> prepare(const Options& options, const base::Clock& clock);

}  // namespace ka::daemon
