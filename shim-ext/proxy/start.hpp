// SPDX-License-Identifier: Apache-2.0
// `start`: the real shim is started, and a proxy before it.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "shim-ext/proxy/settings.hpp"
#include "shim-ext/proxy/shared_pool.hpp"

namespace ka::proxy {

/// Runs the real shim's `start` in the bundle (the working directory), puts a proxy before the
/// address that it answers with, and prints the answer with the proxy's address in its place. A
/// second container of a pod finds the proxy there. Where no proxy can be put, containerd is given
/// the real shim's own answer: a pod without us is better than none. `pool`: what we return to
/// once the shim runs; this thread may use the pod's own CPUs until then.
/// Returns the exit status.
int start(const base::Clock& clock, const std::string& program,
          const std::vector<std::string>& arguments, const Settings& settings, SharedPool& pool);

}  // namespace ka::proxy
