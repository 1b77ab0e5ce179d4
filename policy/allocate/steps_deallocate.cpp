// SPDX-License-Identifier: Apache-2.0
// Deallocate: what a container keeps when it shrinks.
#include "policy/allocate/allocate.hpp"
#include "policy/allocate/steps.hpp"

namespace ka::policy::allocate::steps {

void keep_promised(Cycle& cycle) { cycle.prefer(cycle.request.promised); }

void keep_packed(Cycle& cycle) {
  for (std::size_t i = 0; i < cycle.pools.size() && cycle.needed > 0; ++i) {
    const CpuSet pool = cycle.pools[i];
    const CpuSet kept =
        pool.size() <= cycle.needed ? pool : pack(cycle.machine, pool, cycle.needed);
    cycle.taken |= kept;
    cycle.needed -= kept.size();
    cycle.note({.what = Finding::What::kKept, .cpus = kept});
  }
}

}  // namespace ka::policy::allocate::steps
