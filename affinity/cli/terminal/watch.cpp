// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/terminal/watch.hpp"

#include <chrono>
#include <ctime>
#include <string_view>

namespace ka::cli {
namespace {

constexpr auto kPause = std::chrono::seconds(1);
constexpr const char* kHome = "\033[H";
constexpr const char* kToEndOfLine = "\033[K\n";
constexpr const char* kToEndOfScreen = "\033[K\033[J";

std::string headline(const base::Clock& clock) {
  const std::time_t now = std::chrono::system_clock::to_time_t(clock.wall());
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%H:%M:%S", &parts);
  return std::string(text) + ", every second; Ctrl-C ends it\n\n";
}

/// Line by line over what was there, so that nothing flickers. The last row stays free of a
/// newline, which would scroll.
std::string painted(const std::string& text, const Screen& screen) {
  const std::string fitted = fit(text, screen.columns);
  std::string_view rest = fitted;
  std::string painting = kHome;
  for (std::size_t row = 1; !rest.empty(); ++row) {
    const std::size_t end = rest.find('\n');
    const bool cut = row == screen.rows && end + 1 < rest.size();
    painting += cut ? "..." : rest.substr(0, end);
    rest.remove_prefix(cut ? rest.size() : end + 1);
    if (!rest.empty()) painting += kToEndOfLine;
  }
  return painting + kToEndOfScreen;
}

void show(const base::Clock& clock, const std::string& text, Output& output) {
  const Screen screen = output.screen();
  output.print(screen.is_terminal() ? painted(headline(clock) + text, screen) : text + '\n');
}

}  // namespace

Exit watch(const base::Clock& clock, const std::function<base::Result<std::string>()>& page,
           Output& output) {
  auto text = page();
  if (!text) return output.fail(text.error());
  for (;;) {
    show(clock, text ? *text : "nothing to show: " + text.error().message + "; retrying\n", output);
    clock.sleep(kPause);
    text = page();
  }
}

}  // namespace ka::cli
