// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/prerequisites.hpp"

#include <sys/stat.h>

#include <cstdio>
#include <utility>

#include "affinity/host/capabilities.hpp"
#include "affinity/host/cpu_plugins.hpp"
#include "affinity/host/topology.hpp"
#include "affinity/state/directory.hpp"
#include "base/boot_offset.hpp"
#include "base/files.hpp"
#include "base/log/log.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "shim-ext/watch/kubelet_state.hpp"

namespace ka::daemon {

using base::Result;

namespace {

/// Two that give CPUs to containers would each undo what the other did.
Result<void> check_kubelet(const std::filesystem::path& file) {
  const auto is_static = watch::is_policy_static(file);
  if (!is_static) {  // kubelet may write it anew
    return base::fail(base::ErrorCode::kTransient,
                      file.string() + ": " + is_static.error().message);
  }
  if (!*is_static) return {};
  return base::fail(base::ErrorCode::kInvalid,
                    "mode = \"managed\": kubelet's CPU manager policy is static (" + file.string() +
                        "), and it gives containers their CPUs itself; set cpuManagerPolicy: none "
                        "in kubelet's configuration, or mode = \"follow\"");
}

/// Of what one gives, the other knows nothing, and the runtime refuses a container to which two
/// plugins give a cpuset.
Result<void> check_plugins(const base::ProcFs& proc, const std::filesystem::path& socket) {
  const std::string others = host::running_cpu_plugins(proc, socket);
  if (others.empty()) return {};
  return base::fail(base::ErrorCode::kInvalid,
                    "mode = \"managed\": " + others + " gives containers their CPUs through NRI; " +
                        "remove it from this node, or set mode = \"follow\"");
}

/// Nothing where kubelet gives containers their CPUs.
Result<std::optional<policy::managed::Books>> open_books(const config::Config& config,
                                                         const policy::Topology& topology,
                                                         const base::ProcFs& proc) {
  if (config.mode != config::Mode::kManaged) return std::nullopt;
  if (config.nri_socket.empty()) {
    return base::fail(base::ErrorCode::kInvalid, "mode = \"managed\" needs nri_socket");
  }
  if (auto free = check_kubelet(config.kubelet_state); !free) return unexpected(free.error());
  if (auto alone = check_plugins(proc, config.nri_socket); !alone) {
    return unexpected(alone.error());
  }
  auto books = policy::managed::Books::open(topology, config.managed);
  if (!books) {
    return base::fail(base::ErrorCode::kInvalid, "[affinity.managed]: " + books.error());
  }
  return std::optional(*std::move(books));
}

/// Nothing where kubelet gives containers their CPUs, or where there are none.
Result<std::optional<host::Cgroups>> find_cgroups(const config::Config& config,
                                                  const std::filesystem::path& proc) {
  if (config.mode != config::Mode::kManaged) return std::nullopt;
  auto found = host::Cgroups::find(proc);
  if (found) return std::optional(*std::move(found));
  if (is_gone(found) || found.error().code == base::ErrorCode::kUnavailable) return std::nullopt;
  return base::fail(
      found.error().code,
      "mode = \"managed\": cannot find the containers' cgroups: " + found.error().message);
}

void warn_of_unseen(const std::filesystem::path& proc, const log::Log& log) {
  const auto unseen = host::unseen_without_capabilities(proc / "self");
  if (!unseen || unseen->empty()) return;
  log.warning("VMMs cannot be seen completely",
              {{"unseen", *unseen}, {"next", host::kCapabilityRemedy}});
}

/// Nothing without read_socket.
Result<std::optional<http::UnixListener>> open_reads(const config::Config& config) {
  if (config.read_socket.empty()) return std::nullopt;
  constexpr int kOctal = 8;
  const auto mode = static_cast<mode_t>(std::stoul(config.read_socket_mode, nullptr, kOctal));
  auto reads = http::UnixListener::open(config.read_socket, mode);
  if (!reads) return base::fail(reads.error().code, "read_socket: " + reads.error().message);
  return std::optional(*std::move(reads));
}

}  // namespace

Result<void> check_config(const Options& options) {
  const auto config = config::load_config(options.config);
  if (!config) return unexpected(config.error());
  for (const auto& file : config->files) {
    std::printf("%s: OK\n", base::printable(file.native(), base::kMaxPath).c_str());
  }
  if (!config->has_table) std::puts("no [affinity] table found; using defaults");
  return {};
}

Result<Prerequisites> prepare(const Options& options, const base::Clock& clock) {
  StartParts parts(clock);
  if (const auto& offset = base::boot_offset(); !offset) return unexpected(offset.error());
  auto topology = host::load_topology(options.topology);
  if (!topology) return unexpected(topology.error());
  parts.done("topology");
  auto config = config::load_config(options.config, "/", topology->all());
  if (!config) return unexpected(config.error());
  parts.done("configuration");
  auto books = open_books(*config, *topology, base::ProcFs(options.roots.proc));
  if (!books) return unexpected(books.error());
  auto cgroups = find_cgroups(*config, options.roots.proc);
  if (!cgroups) return unexpected(cgroups.error());
  auto boot_id = base::ProcFs(options.roots.proc).boot_id();
  if (!boot_id) return unexpected(boot_id.error());
  const log::Log log(config->log_level, clock);
  warn_of_unseen(options.roots.proc, log);
  const auto state_dir = options.state_dir.value_or(config->state_dir);
  for (const auto& directory : {options.roots.run / "kata-affinity", state_dir}) {
    const auto closed = state::make_private(directory, log);
    if (!closed) return unexpected(closed.error());
  }
  auto api = http::UnixListener::open(options.socket);
  if (!api) return unexpected(api.error());
  auto reads = open_reads(*config);
  if (!reads) return unexpected(reads.error());
  auto state_lock = state::Directory::claim(state_dir);
  if (!state_lock) return unexpected(state_lock.error());
  auto metrics =
      config->metrics_listen.empty() ? base::Fd{} : http::listen_tcp(config->metrics_listen);
  if (!metrics) return unexpected(metrics.error());
  parts.done("sockets");
  return Prerequisites{std::move(*config),  std::move(*topology),   std::move(*boot_id),
                       state_dir,           std::move(*state_lock), std::move(*api),
                       std::move(*reads),   std::move(*metrics),    std::move(*books),
                       std::move(*cgroups), std::move(parts)};
}

}  // namespace ka::daemon
