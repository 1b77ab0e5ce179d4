// SPDX-License-Identifier: Apache-2.0
// The steps that built-in policies are made of. allocate.cpp has the table of them all.
#pragma once

#include "policy/allocate/pipeline.hpp"

namespace ka::policy::allocate::steps {

// Sort
void coarse_to_fine(Cycle& cycle);
void split_first(Cycle& cycle);
void cores_only(Cycle& cycle);

// Filter
void whole_core_request(Cycle& cycle);
void reserved(Cycle& cycle);
void cpu_class(Cycle& cycle);
void numa_affinity(Cycle& cycle);
void near_held(Cycle& cycle);
void isolated_first(Cycle& cycle);
void whole_cores(Cycle& cycle);
void one_pool(Cycle& cycle);

// PostFilter
void least_spread(Cycle& cycle);
void spill(Cycle& cycle);

// PreScore
void count_free(Cycle& cycle);

// Select
void whole_groups(Cycle& cycle);
void part_of_l3(Cycle& cycle);
void single_cpus(Cycle& cycle);
void even_splits(Cycle& cycle);

// Score
void rank(Cycle& cycle);
void one_socket(Cycle& cycle);
void balance(Cycle& cycle);
void exact_cores(Cycle& cycle);

// Allocate
void take_fitting(Cycle& cycle);
void take_split(Cycle& cycle);

// Deallocate
void keep_promised(Cycle& cycle);
void keep_packed(Cycle& cycle);

}  // namespace ka::policy::allocate::steps
