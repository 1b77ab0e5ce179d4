// SPDX-License-Identifier: Apache-2.0
// Checks of `doctor`: NRI of the container runtime, and the shim proxy where there is none.
#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <sstream>
#include <utility>

#include "affinity/cli/doctor/checkup.hpp"
#include "affinity/cli/kata/kata_config.hpp"
#include "affinity/cli/node/node.hpp"
#include "affinity/config/handlers.hpp"
#include "base/files.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
using Level = Symptom::Level;

constexpr const char* kTurnNriOn =
    "set disable = false in [plugins.\"io.containerd.nri.v1.nri\"] of containerd's config.toml and "
    "restart containerd; without NRI sandboxes are found in Kata's directories only";
constexpr const char* kRestartContainerd = "systemctl restart containerd";

/// Whether a process listens at NRI's socket (/proc/net/unix: address, references, protocol, flags,
/// type, state, inode, path); absent: that cannot be read.
std::optional<bool> is_listened_to(const fs::path& root) {
  constexpr std::size_t kLargestTable = std::size_t{64} << 20;
  constexpr unsigned long kListens = 1UL << 16;  // __SO_ACCEPTCON
  const auto table = base::read_file(root / "proc/net/unix", kLargestTable);
  if (!table) return std::nullopt;
  std::istringstream lines(*table);
  for (std::string line; std::getline(lines, line);) {
    if (!line.ends_with("/run/nri/nri.sock")) continue;
    std::istringstream words(line);
    std::string skipped;
    unsigned long flags = 0;
    words >> skipped >> skipped >> skipped >> std::hex >> flags;
    if ((flags & kListens) != 0) return true;
  }
  return false;
}

/// A runtime that has ended, or has NRI disabled now, leaves its socket behind.
Symptom examine_nri_socket(const fs::path& root) {
  if (is_listened_to(root).value_or(true)) {
    return {"nri", Level::kGood, "NRI is enabled at /var/run/nri/nri.sock", {}};
  }
  const auto text = base::read_regular_file(root / "etc/containerd/config.toml");
  const auto entries = config::parse_whole(text.value_or(""), "config.toml");
  const bool disabled =
      entries && flag_at(*entries, {"plugins", "io.containerd.nri.v1.nri", "disable"}) == true;
  return {
      "nri", Level::kBad,
      std::string("nothing listens at /var/run/nri/nri.sock: ") +
          (disabled ? "NRI is disabled in /etc/containerd/config.toml"
                    : "the container runtime that created it has ended or has NRI disabled now"),
      disabled ? kTurnNriOn : "start the container runtime with NRI enabled", kRestartContainerd};
}

/// CRI-O has NRI since 1.26, and on by default since 1.30.
Symptom without_crio_nri() {
  return {
      "nri", Level::kBad, "no NRI socket; CRI-O before 1.30 has NRI disabled by default",
      "set enable_nri = true in [crio.nri] of a file in /etc/crio/crio.conf.d and restart CRI-O",
      "systemctl restart crio"};
}

/// Containers of these handlers are reported without NRI.
std::string handlers_behind_proxy(const fs::path& root) {
  std::string names;
  base::Trouble ignored;
  for (const config::Handler& handler : config::read_handlers(root, ignored)) {
    if (handler.is_proxy()) names += (names.empty() ? "" : ", ") + handler.name;
  }
  return names;
}

/// Of containerd as Debian or Docker packages it, if that has no NRI: 1.6 and before.
std::optional<std::string> version_without_nri(const fs::path& root) {
  constexpr std::pair<std::int64_t, std::int64_t> kFirstWithNri{1, 7};
  for (const char* package : {"containerd", "containerd.io"}) {
    const auto version = package_version(root, package);
    if (version && *version < kFirstWithNri) {
      return fmt::format("{}.{}", version->first, version->second);
    }
  }
  return std::nullopt;
}

std::optional<Symptom> examine_without_nri(const fs::path& root) {
  const std::string proxied = handlers_behind_proxy(root);
  if (!proxied.empty()) {
    return Symptom{"nri",
                   Level::kGood,
                   "no NRI; the shim proxy reports the containers of runtime handler " + proxied,
                   {}};
  }
  const auto version = version_without_nri(root);
  if (!version) return std::nullopt;
  return Symptom{"nri", Level::kBad, "containerd " + *version + " has no NRI",
                 "add a runtime handler with the shim proxy, or upgrade to containerd 1.7 or later",
                 "kata-affinityctl setup --proxy --yes"};
}

}  // namespace

Symptom examine_runtime(const fs::path& root) {
  if (has_nri_socket(root)) return examine_nri_socket(root);
  if (auto symptom = examine_without_nri(root)) return *std::move(symptom);
  const fs::path file = root / "etc/containerd/config.toml";
  const auto text = base::read_regular_file(file);
  if (!text && is_there(root / "etc/crio")) return without_crio_nri();
  if (!text) {
    return {"nri", Level::kBad,
            "no NRI socket, and no /etc/containerd/config.toml that enables NRI", kTurnNriOn};
  }
  const auto entries = config::parse_whole(*text, file);
  if (!entries)
    return {"nri", Level::kBad, entries.error().message, "correct containerd's config.toml"};
  const auto disabled = flag_at(*entries, {"plugins", "io.containerd.nri.v1.nri", "disable"});
  if (disabled == false) {
    return {"nri", Level::kBad, "containerd's configuration enables NRI, but its socket is missing",
            "restart containerd; NRI needs 1.7 or later", kRestartContainerd};
  }
  return {"nri", Level::kBad,
          disabled ? "NRI is disabled in /etc/containerd/config.toml"
                   : "no NRI socket; containerd before 2.0 has NRI disabled by default",
          kTurnNriOn};
}

}  // namespace ka::cli
