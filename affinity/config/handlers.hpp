// SPDX-License-Identifier: Apache-2.0
// Runtime handlers of containerd and CRI-O that start Kata: which shim, with which configuration.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "affinity/config/entries.hpp"
#include "base/result.hpp"
#include "base/trouble.hpp"

namespace ka::config {

/// Named as a RuntimeClass names it.
struct Handler {
  std::string name;  ///< "kata-qemu"
  std::string shim;  ///< its program: an absolute path, or a name looked up in PATH
  /// Kata's configuration file as the runtime's options name it (ConfigPath,
  /// runtime_config_path); empty: Kata's search order.
  std::filesystem::path config;
  std::filesystem::path declared_in;

  /// It starts our shim proxy.
  bool is_proxy() const;
};

/// containerd's config.toml below a root, with the files that it imports (containerd's
/// cmd/containerd/server/config). Before 2.0 an imported file replaces all settings of the CRI
/// plugin; here they are merged, so that a handler may be listed that containerd no longer has.
struct Containerd {
  int version = 2;                ///< of the format; 3 since containerd 2.0
  bool imports_conf_d = false;    ///< it reads *.toml in /etc/containerd/conf.d
  std::vector<Handler> handlers;  ///< those that start Kata or our proxy, by name
};

/// kGone where there is no config.toml. An imported file that cannot be read is skipped; `unseen`
/// says why, unless it is not valid.
base::Result<Containerd> read_containerd(const std::filesystem::path& root, base::Trouble& unseen);

/// Those of containerd, then of CRI-O (crio.conf and every file in crio.conf.d, in name order);
/// nothing where neither is configured. `unseen`: why a file or directory could not be read.
std::vector<Handler> read_handlers(const std::filesystem::path& root, base::Trouble& unseen);

}  // namespace ka::config
