// SPDX-License-Identifier: Apache-2.0
// The file that tells a workload where it runs: /run/kata-affinity/cpus.json, in its guest and,
// where it is asked for, in its container.
#pragma once

#include <string>

#include "policy/facts/guest.hpp"

namespace ka::guest {

/// {"version":1,"common":"0","cpus":[{"cpu":1,"vcpu":3,"apic_id":3,"online":true,"host_cpus":"5",
/// "host_nodes":"0","dedicated":true},...],"containers":[{"id":"...","name":"app","cpus":"1-2",
/// "dedicated":true},...]}, with a newline. `common` is where all floats that has no CPUs of its
/// own.
std::string notice_text(const policy::GuestSpec& spec, const policy::GuestReport& report);

}  // namespace ka::guest
