// SPDX-License-Identifier: Apache-2.0
// Descriptors of processes: one stays with its process, whoever gets the number later.
#pragma once

#include "base/fd.hpp"

namespace ka::base {

/// Invalid where there is none; errno says why, ESRCH that no process has the number.
Fd open_pidfd(int pid);

/// Whether the process has ended (pidfd_open(2)); false also where that cannot be seen now.
bool has_ended(int pidfd);

}  // namespace ka::base
