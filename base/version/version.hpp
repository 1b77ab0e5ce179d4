// SPDX-License-Identifier: Apache-2.0
// Which version of the project this program is, and from which commit it was built.
#pragma once

namespace ka::version {

/// "0.1.0": the project version of CMakeLists.txt.
const char* number();

/// The abbreviated commit, with "-dirty" behind it where the tree had changes; "unknown" outside of
/// a git checkout.
const char* commit();

/// "0.1.0 (1f3c5a7b9d0e)", as `--version` prints it.
const char* text();

}  // namespace ka::version
