// SPDX-License-Identifier: Apache-2.0
#include "base/fd.hpp"

#include <unistd.h>

namespace ka::base {

void Fd::reset(int number) {
  if (number_ >= 0) ::close(number_);
  number_ = number;
}

}  // namespace ka::base
