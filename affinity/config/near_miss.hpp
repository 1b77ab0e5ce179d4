// SPDX-License-Identifier: Apache-2.0
// Near misses: a table or key that is misspelt, or in the wrong place.
#pragma once

#include <string>
#include <string_view>

namespace ka::config {

/// What a key at the top of Kata's file was meant to be: "[affinity]", "mode in [affinity]". Kata
/// has tables only there, with other names. Empty: it is not ours.
std::string meant_at_top(std::string_view name, bool is_table);

/// What a key or table of ours in Kata's [runtime] was meant to be: that is the last table of
/// Kata's files, and gets what is appended to one. Empty: it is Kata's, or unknown.
std::string meant_in_runtime(std::string_view name);

/// The key of ours that an unknown one below [affinity] nearly is; empty: there is none.
std::string_view nearest_key(std::string_view name);

}  // namespace ka::config
