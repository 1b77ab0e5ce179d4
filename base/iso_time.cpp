// SPDX-License-Identifier: Apache-2.0
#include "base/iso_time.hpp"

#include <cstdio>
#include <ctime>

namespace ka::base {

std::string iso_time(std::chrono::system_clock::time_point time) {
  using std::chrono::floor;
  const auto milliseconds = floor<std::chrono::milliseconds>(time);
  const auto seconds = floor<std::chrono::seconds>(time);
  const std::time_t plain = std::chrono::system_clock::to_time_t(seconds);
  std::tm parts{};
  ::gmtime_r(&plain, &parts);
  char text[40];
  const std::size_t size = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + size, sizeof(text) - size, ".%03dZ",
                static_cast<int>((milliseconds - seconds).count()));
  return text;
}

}  // namespace ka::base
