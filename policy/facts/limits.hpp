// SPDX-License-Identifier: Apache-2.0
// Limits on what is followed of a node: reports beyond them are rejected, so that memory and
// state files stay bounded. Kubernetes supports 110 pods a node; 500 are run.
#pragma once

#include <cstddef>

namespace ka::policy {

/// Sandboxes, and pods of other runtimes, at once.
inline constexpr std::size_t kMaxSandboxes = 4096;
/// Containers of one sandbox, exited ones among them.
inline constexpr std::size_t kMaxContainers = 512;
/// Containers of all sandboxes.
inline constexpr std::size_t kMaxNodeContainers = 16384;

}  // namespace ka::policy
