// SPDX-License-Identifier: Apache-2.0
// What a program says when an exception ends it.
#pragma once

#include <exception>
#include <string>

namespace ka::usage {

/// What failed, why, and which limit to look at, as in "cannot start a thread: Resource temporarily
/// unavailable; see TasksMax= of the unit and pids.max of the cgroups around it".
std::string last_words(const std::exception& error);

/// Prints "<program>: fatal: <last words>" to standard error, also where memory has run out.
void print_last_words(const char* program, const std::exception& error) noexcept;

}  // namespace ka::usage
