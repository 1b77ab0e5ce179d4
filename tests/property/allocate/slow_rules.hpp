// SPDX-License-Identifier: Apache-2.0
// kubelet's rules for taking CPUs, written down as plainly as possible: everything is counted anew
// whenever it is needed, and every way to split is tried. What the allocator does quickly must come
// to the same.
#pragma once

#include "policy/allocate/allocate.hpp"

namespace ka::test {

struct SlowRequest {
  policy::CpuSet available;
  int cpus = 0;
  policy::allocate::OptionSet options;
  int group_size = 1;
};

/// The CPUs that the rules give; there must be enough.
policy::CpuSet take_slowly(const policy::Topology& topology, const SlowRequest& request);

}  // namespace ka::test
