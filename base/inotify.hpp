// SPDX-License-Identifier: Apache-2.0
// inotify, with errors that name the limit that was reached.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace ka::base {

/// Non-blocking.
Result<Fd> open_inotify();

/// The watch of a directory, which may be watched already. kGone: there is no such directory.
Result<int> watch_directory(int inotify, const std::string& directory, std::uint32_t events);

/// What makes such an error go away; empty: not known.
std::string inotify_remedy(const Error& error);

}  // namespace ka::base
