// SPDX-License-Identifier: Apache-2.0
// What kata-affinity-helper answers, as values. It runs as root, and what it reports comes from
// elsewhere: names of interrupts, threads and units.
#pragma once

#include <string>
#include <string_view>

#include "base/http/message.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/quiet.hpp"

namespace ka::quiet {

/// Things of one kind that are named in an answer, at most.
inline constexpr std::size_t kMaxLeft = 64;

/// POST /v1/quiet: keep the host off these CPUs, and off no others.
http::Request quiet_request(const policy::QuietRequest& wanted);

/// kInvalid, with the path of what is wrong. Names and reasons become printable.
base::Result<policy::QuietState> read_state(std::string_view document);

}  // namespace ka::quiet
