// SPDX-License-Identifier: Apache-2.0
// The settings that decide a plan, as text: as configuration, scenarios and annotations write
// them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "policy/plan/settings.hpp"

namespace ka::documents {

/// "dedicated", "balanced", "mask", "none". The error (kInvalid) lists them.
base::Result<policy::plan::VcpuPinning> parse_vcpu_pinning(std::string_view text);
std::string_view vcpu_pinning_name(policy::plan::VcpuPinning pinning);

/// "auto", "agent", "kata-agent", "none". The error (kInvalid) lists them.
base::Result<policy::plan::GuestAgent> parse_guest_agent(std::string_view text);

/// "sandbox", "shared-pool", "isolate", or a cpuset that is not empty.
base::Result<policy::plan::Housekeeping> parse_housekeeping(std::string_view text);
std::string housekeeping_text(const policy::plan::Housekeeping& housekeeping);

}  // namespace ka::documents
