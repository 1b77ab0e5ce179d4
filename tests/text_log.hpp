// SPDX-License-Identifier: Apache-2.0
// A log whose lines a test reads.
#pragma once

#include <string>
#include <string_view>

#include "base/log/log.hpp"
#include "tests/test_clock.hpp"

namespace ka::tests {

/// Appends lines to `text`, which must outlive it. Its time stands still: of lines that are alike
/// the first ones are written.
inline log::Log text_log(log::Level level, std::string& text) {
  static const TestClock kStill;
  return log::Log(
      level,
      [&text](log::Level at, std::string_view line, log::Fields fields) {
        text += log::to_prefixed_line(at, line, fields);
      },
      kStill);
}

}  // namespace ka::tests
