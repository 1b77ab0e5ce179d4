// SPDX-License-Identifier: Apache-2.0
// What `allocate` answers, for one call or for a line of a batch.
#pragma once

#include <boost/json/fwd.hpp>

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"
#include "base/result.hpp"
#include "policy/allocate/machine.hpp"

namespace ka::cli {

/// The CPUs, or why there are none, as JSON; kInvalid for options that make no sense.
base::Result<boost::json::object> allocation(const AllocateOptions& options,
                                             const policy::allocate::Machine& machine);

/// `allocate --batch`: each line may name what the options name, and has precedence over them.
Exit run_allocate_batch(const AllocateOptions& options, Output& output);

}  // namespace ka::cli
