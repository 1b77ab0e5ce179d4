// SPDX-License-Identifier: Apache-2.0
// What each command's --help shows of its use.
#pragma once

#include <string>
#include <string_view>

namespace ka::cli {

/// The examples of a command by its path ("status", "sandbox add"; empty: the program itself),
/// with their heading. A command without any is an error of ours, which the tests find.
std::string examples_of(std::string_view path);

}  // namespace ka::cli
