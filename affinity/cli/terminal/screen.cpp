// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/terminal/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace ka::cli {
namespace {

constexpr std::size_t kHang = 4;

/// Where a line may end: before the blank, or behind the comma, that is the last one within
/// `columns`; behind what is longer, the first one after it. The line's own indent is no such
/// place.
std::size_t break_of(std::string_view line, std::size_t columns) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  std::size_t last = 0;
  for (std::size_t i = begin + 1; i < line.size(); ++i) {
    if (i > columns && last != 0) break;
    if (line[i] == ' ' || line[i - 1] == ',') last = i;
  }
  return last == 0 ? line.size() : last;
}

bool wants_colours() {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return !dumb && (refused == nullptr || *refused == 0);
}

}  // namespace

Screen screen_of(int fd) {
  if (::isatty(fd) == 0) return {};
  winsize size{};
  const bool known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  return {known ? size.ws_col : std::size_t{80}, known ? size.ws_row : std::size_t{24},
          wants_colours()};
}

std::string wrapped(std::string_view line, std::size_t columns, std::size_t indent) {
  std::string text;
  std::string rest(line);
  while (rest.size() > columns) {
    const std::size_t end = break_of(rest, columns);
    const std::size_t next = rest.find_first_not_of(' ', end);
    if (next == std::string::npos) break;
    text += rest.substr(0, rest.find_last_not_of(' ', end - 1) + 1) + '\n';
    rest = std::string(indent, ' ') + rest.substr(next);
  }
  return text + rest;
}

std::string fit(std::string_view text, std::size_t columns) {
  if (columns == 0) return std::string(text);
  std::string fitted;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    fitted += wrapped(line, columns, begin + kHang) + '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return fitted;
}

}  // namespace ka::cli
