// SPDX-License-Identifier: Apache-2.0
#include "base/signals.hpp"

#include <csignal>

namespace ka::base {

void ignore_write_signals() {
  std::signal(SIGPIPE, SIG_IGN);  // whoever read may be gone
  std::signal(SIGXFSZ, SIG_IGN);  // RLIMIT_FSIZE
}

}  // namespace ka::base
