// SPDX-License-Identifier: Apache-2.0
// persist.json of Kata's Go runtime: the state of one sandbox, rewritten at each change
// (virtcontainers/persist.go, persist/api/*.go). It is written in place: a reader may see a part.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "policy/ledger/event.hpp"

namespace ka::kata {

/// A larger file is not read.
inline constexpr std::size_t kMaxPersist = std::size_t{16} << 20;

struct PersistedSandbox {
  policy::ledger::PodSeen pod;
  int vmm_pid = 0;  ///< 0: absent; which process that is now is for the reader to find out
  std::vector<policy::ledger::ContainerSeen> containers;  ///< without the pod's own (pause)
};

/// kInvalid: this is no such file, or only a part of one. The specs are whole but for `exited`,
/// which the file does not have. `id` is the sandbox's, the name of the file's directory.
base::Result<PersistedSandbox> parse_persist(std::string_view text, const std::string& id);

}  // namespace ka::kata
