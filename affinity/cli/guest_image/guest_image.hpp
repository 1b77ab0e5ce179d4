// SPDX-License-Identifier: Apache-2.0
// `guest-image`: the agent in the images of guests.
#pragma once

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

Exit run(const GuestImageCheckOptions& options, Output& output);
Exit run(const GuestImageAddOptions& options, Output& output);
Exit run(const GuestImageExtensionOptions& options, Output& output);

}  // namespace ka::cli
