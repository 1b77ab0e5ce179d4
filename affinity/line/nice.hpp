// SPDX-License-Identifier: Apache-2.0
// Writes of nice values, each with the thread's identity checked before and after (I9).
#pragma once

#include "affinity/host/affinity_calls.hpp"
#include "base/result.hpp"
#include "base/thread_stats.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::line {

struct NiceWrite {
  policy::ThreadKey key;
  int value = 0;
};

/// What the thread has now. kGone: it has ended, which is believed only where /proc shows it no
/// more.
base::Result<int> read_nice(const policy::ThreadKey& key, host::AffinityCalls& calls,
                            base::ThreadStats& stats);

struct NiceResult {
  base::Result<void> done;
  /// Its number was another thread's by then, which has the value that it was started with again.
  bool reverted = false;
  /// Which thread the write reached could not be seen; check_nice_again() is due.
  bool unsettled = false;
};

/// Writes where the thread has `before`. kGone: it has ended, as in read_nice(); kTransient: it has
/// another value by now, or cannot be seen.
NiceResult write_nice(const NiceWrite& write, int before, host::AffinityCalls& calls,
                      base::ThreadStats& stats);

/// The result of a write that was made before and is unsettled. Undoes it where it reached another
/// thread; writes nothing else.
NiceResult check_nice_again(const NiceWrite& write, host::AffinityCalls& calls,
                            base::ThreadStats& stats);

}  // namespace ka::line
