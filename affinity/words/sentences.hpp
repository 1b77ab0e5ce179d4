// SPDX-License-Identifier: Apache-2.0
// What a plan has to say, for people.
#pragma once

#include <string>

#include "policy/facts/id_set.hpp"
#include "policy/plan/plan.hpp"

namespace ka::words {

/// "CPU 7", "CPUs 2-3,8", "no CPU".
std::string cpus_text(const policy::CpuSet& cpus);

/// One sentence without a full stop: "not isolated: CPU 7 also carries housekeeping".
std::string sentence(const policy::plan::Note& note);

}  // namespace ka::words
