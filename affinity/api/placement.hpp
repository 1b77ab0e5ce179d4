// SPDX-License-Identifier: Apache-2.0
// Sentences about where threads of a sandbox run, by its plan and by the kernel.
#pragma once

#include <boost/json/fwd.hpp>
#include <functional>

#include "affinity/line/views.hpp"

namespace ka::api {

/// Of which sets of CPUs there is to be a sentence.
using AboutCpus = std::function<bool(const policy::CpuSet&)>;

/// "vCPU 1 runs only on CPU 4, for container c1".
void add_vcpu_results(boost::json::array& results, const line::SandboxView& view,
                      const AboutCpus& about);
/// "3 emulator threads may use CPUs 0-1", and one sentence for each thread that is elsewhere.
void add_thread_results(boost::json::array& results, const line::SandboxView& view,
                        const AboutCpus& about);

}  // namespace ka::api
