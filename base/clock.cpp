// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <ctime>
#include <thread>

#include "base/boot_offset.hpp"

namespace ka::base {

Clock::Time Clock::now() const { return std::chrono::steady_clock::now(); }

std::chrono::system_clock::time_point Clock::wall() const {
  return std::chrono::system_clock::now();
}

std::chrono::nanoseconds Clock::since_boot() const {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec) -
         boot_offset().value_or(std::chrono::nanoseconds(0));
}

void Clock::sleep(Time::duration time) const { std::this_thread::sleep_for(time); }

}  // namespace ka::base
