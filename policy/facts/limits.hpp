// SPDX-License-Identifier: Apache-2.0
// How much of a node is followed: what sources tell beyond this is refused, so that memory and
// state files stay bounded whatever they tell. Kubernetes supports 110 pods a node; 500 are run.
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
