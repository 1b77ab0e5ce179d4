// SPDX-License-Identifier: Apache-2.0
// The composition root: builds everything in order, and runs it on one thread.
#pragma once

#include "affinity/daemon/options.hpp"
#include "base/result.hpp"

namespace ka::daemon {

/// Runs until SIGTERM or SIGINT, which leave every thread as it is. The error is why it could not
/// start; kInvalid: what it was given (options, configuration) is wrong.
base::Result<void> run(const Options& options);

}  // namespace ka::daemon
