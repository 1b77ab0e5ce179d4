// SPDX-License-Identifier: Apache-2.0
// The terminal on the other end, and text that fits it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ka::cli {

/// 0: not bounded, since what is printed goes to a file or to another program.
struct Screen {
  std::size_t columns = 0;
  std::size_t rows = 0;
  bool colours = false;

  bool is_terminal() const { return columns > 0; }
};

/// What an open file descriptor shows now; 80 by 24 for a terminal of unknown size. Colours
/// unless NO_COLOR is set (https://no-color.org) or the terminal is a dumb one.
Screen screen_of(int fd);

/// A line in pieces of at most `columns`, broken at blanks and behind commas, those after the first
/// indented by `indent`. A word that is longer stays whole. Ends without a newline.
std::string wrapped(std::string_view line, std::size_t columns, std::size_t indent);

/// Every line of a text, wrapped deeper than it begins; as it is where `columns` is 0.
std::string fit(std::string_view text, std::size_t columns);

}  // namespace ka::cli
