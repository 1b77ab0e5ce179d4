// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/doctor/checkup.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>

#include "affinity/cli/kata/kata_config.hpp"
#include "affinity/cli/kata/profile.hpp"
#include "affinity/cli/node/node.hpp"
#include "affinity/config/config.hpp"
#include "affinity/config/entries.hpp"
#include "base/files.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
using Level = Symptom::Level;
using Symptoms = std::vector<Symptom>;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

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
  const auto text = base::read_file(root / "etc/containerd/config.toml");
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

Symptom examine_nri(const fs::path& root) {
  if (is_there(root / "run/nri/nri.sock") || is_there(root / "var/run/nri/nri.sock")) {
    return examine_nri_socket(root);
  }
  const fs::path file = root / "etc/containerd/config.toml";
  const auto text = base::read_file(file);
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

Symptom examine_debugfs(const fs::path& root) {
  const fs::path debugfs = root / "sys/kernel/debug";
  if (is_there(debugfs / "kvm")) {
    return {"debugfs", Level::kGood, "KVM's debugfs maps threads to vCPUs", {}};
  }
  const auto names = base::list_directory(debugfs);
  if (names && !names->empty()) {
    return {"debugfs", Level::kNote, "debugfs is mounted but has no kvm directory",
            "load the kvm module", "modprobe kvm"};
  }
  return {"debugfs", Level::kBad,
          "debugfs is not mounted: vCPU threads are identified by descriptors and names only",
          "mount debugfs", "mount -t debugfs debugfs /sys/kernel/debug"};
}

Symptom examine_kubelet(const fs::path& root) {
  const auto state = read_kubelet_state(root);
  if (!state && state.error().code == base::ErrorCode::kInvalid) {
    return {"kubelet", Level::kBad, state.error().message, "restart kubelet",
            "systemctl restart kubelet"};
  }
  if (!state) {
    return {"kubelet", Level::kNote,
            "no CPU manager state on this node: kubelet assigns no exclusive CPUs",
            "set cpuManagerPolicy: static in kubelet's configuration"};
  }
  if (state->policy == "static") {
    return {"kubelet", Level::kGood, "kubelet's CPU manager policy is static", {}};
  }
  if (runs(root, "dracpu")) {
    return {"kubelet",
            Level::kGood,
            "kubelet's CPU manager policy is \"" + state->policy + "\", as dra-driver-cpu needs it",
            {}};
  }
  return {"kubelet", Level::kNote,
          "kubelet's CPU manager policy is \"" + state->policy +
              "\": no container owns CPUs, unless mode is \"managed\"",
          "set cpuManagerPolicy: static in kubelet's configuration, or mode = \"managed\""};
}

/// Errors that keep the daemon from starting or reloading.
void examine_settings(const fs::path& root, Symptoms& symptoms) {
  for (const fs::path& file : find_kata(root)) {
    const auto config = config::load_config(file);
    if (config || !read_merged(file)) continue;  // examine_kata() reports what is no TOML
    symptoms.push_back({"config", Level::kBad, config.error().message,
                        "correct that file, and reload the daemon"});
  }
}

/// Exclusive containers on a node without a profile are degraded: nothing isolates them.
Symptom examine_profile(const fs::path& root) {
  const auto profile = profile_of_node(root);
  if (profile == Profile::kIsolated) {
    return {"profile", Level::kGood, "the profile isolates exclusive containers", {}};
  }
  const char* text =
      !profile ? "no profile is set, exclusive containers are degraded: other threads of their VM "
                 "run on their CPUs"
      : profile == Profile::kWatch
          ? "profile watch: nothing is written, exclusive containers are degraded"
          : "profile default, exclusive containers are degraded: vCPUs are pinned, other threads "
            "of their VM run on the same CPUs";
  return {"profile", Level::kNote, text,
          "isolate exclusive containers; `kata-affinityctl setup` shows first what it writes",
          kIsolateCommand};
}

}  // namespace

std::string_view level_name(Symptom::Level level) {
  switch (level) {
    case Level::kGood:
      return "good";
    case Level::kNote:
      return "note";
    case Level::kBad:
      break;
  }
  return "bad";
}

std::vector<Symptom> examine(const fs::path& root) {
  Symptoms symptoms{examine_nri(root)};
  std::ranges::move(examine_kata(root), std::back_inserter(symptoms));
  examine_settings(root, symptoms);
  if (!find_kata(root).empty()) symptoms.push_back(examine_profile(root));
  symptoms.push_back(examine_debugfs(root));
  symptoms.push_back(examine_kubelet(root));
  std::ranges::move(examine_machine(root), std::back_inserter(symptoms));
  std::ranges::move(examine_agents(root), std::back_inserter(symptoms));
  return symptoms;
}

}  // namespace ka::cli
