// SPDX-License-Identifier: Apache-2.0
// kubelet's cpu_manager_state: which CPUs it assigned to which container, and the shared pool
// (pkg/kubelet/cm/cpumanager/state/checkpoint.go). The file has had four versions:
//
//   1  entries by container id
//   2  entries by pod uid and container name
//   3  as 2, and podEntries: CPUs of a pod as a whole
//   4  as 3, and all of it once more as text in "data", which counts; there also "baselines", what
//      an in-place resize of an exclusive container must keep
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "policy/ledger/event.hpp"

namespace ka::watch {

struct KubeletState {
  policy::ledger::KubeletSeen seen;
  std::string policy;  ///< "none", "static"
  /// False: the file does not have the checksum that kubelet would give it. Its content may still
  /// be right: the checksum is over the text form of Go's structures, which changes with them.
  bool checksum_fits = true;
};

/// The largest file that is read: 1,000 pods with a container each have 200 KiB.
inline constexpr std::size_t kMaxKubeletState = std::size_t{4} << 20;

/// kInvalid: this is no such file, or only a part of one, or kubelet's policy has not started yet.
base::Result<KubeletState> parse_kubelet_state(std::string_view text);

/// Whether kubelet gives containers their CPUs itself, by this state file. No file, or an empty
/// path: it does not. The error: the file cannot be read, or parsed.
base::Result<bool> is_policy_static(const std::filesystem::path& file);

}  // namespace ka::watch
