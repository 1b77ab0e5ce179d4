// SPDX-License-Identifier: Apache-2.0
// The state of a container as OCI runtimes hand it to hooks (opencontainers/runtime-spec,
// runtime.md, "State"), as far as it is needed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ka::agent {

/// The "id" of the object that this JSON text is; absent when it is none, has none, or the id has
/// characters that ids do not have.
std::optional<std::string> id_in_state(std::string_view text);

}  // namespace ka::agent
