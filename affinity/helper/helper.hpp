// SPDX-License-Identifier: Apache-2.0
// The helper as a program: its parts, its loop, its end.
#pragma once

#include "affinity/helper/options.hpp"
#include "base/result.hpp"

namespace ka::helper {

/// Serves until a signal (SIGTERM, SIGINT), and leaves everything as it is; or puts all back, where
/// the options say so. kInvalid: the configuration is wrong.
base::Result<void> run(const Options& options);

}  // namespace ka::helper
