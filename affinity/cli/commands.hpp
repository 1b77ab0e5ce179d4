// SPDX-License-Identifier: Apache-2.0
// The commands: each takes its options, prints through Output, and says how the program ends.
#pragma once

#include <boost/json/fwd.hpp>

#include "affinity/cli/options.hpp"
#include "affinity/cli/output.hpp"
#include "base/result.hpp"

namespace ka::cli {

/// Shows what a change did; threads that could not be placed are a "no".
Exit show_outcome(const base::Result<boost::json::object>& answer, Output& output);

Exit run(const TopologyOptions& options, Output& output);
Exit run(const PlanOptions& options, Output& output);
Exit run(const AllocateOptions& options, Output& output);
Exit run(const HintsOptions& options, Output& output);
Exit run(const MergeHintsOptions& options, Output& output);
Exit run(const SimulateOptions& options, Output& output);
Exit run(const StatusOptions& options, Output& output);
Exit run(const NamesOptions& options, Output& output);
Exit run(const ExplainOptions& options, Output& output);
Exit run(const MapOptions& options, Output& output);
Exit run(const VerifyOptions& options, Output& output);
Exit run(const ReconcileOptions& options, Output& output);
Exit run(const ReleaseOptions& options, Output& output);
Exit run(const SandboxAddOptions& options, Output& output);
Exit run(const SandboxRemoveOptions& options, Output& output);
Exit run(const ContainerUpdateOptions& options, Output& output);
Exit run(const ContainerRemoveOptions& options, Output& output);
Exit run(const PinOptions& options, Output& output);
Exit run(const EventsOptions& options, Output& output);
Exit run(const DoctorOptions& options, Output& output);
Exit run(const SetupOptions& options, Output& output);
Exit run(const GuestImageCheckOptions& options, Output& output);
Exit run(const GuestImageAddOptions& options, Output& output);
Exit run(const GuestImageExtensionOptions& options, Output& output);

}  // namespace ka::cli
