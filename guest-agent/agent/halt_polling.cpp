// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/halt_polling.hpp"

#include <system_error>

#include "guest-agent/agent/files.hpp"

namespace ka::agent {
namespace {

using policy::GuestIdle;

constexpr const char* kDriver = "haltpoll";
constexpr const char* kNoDriver = "none";
constexpr const char* kNoTime = "0";
/// The kernel's default, in nanoseconds (drivers/cpuidle/governors/haltpoll.c).
constexpr const char* kTime = "200000";

}  // namespace

GuestIdle HaltPolling::poll(bool wanted) const {
  if (!wanted) {
    stop();
    return GuestIdle::kAsBefore;
  }
  const std::string now = driver();
  if (now == kDriver) return start();
  return now == kNoDriver ? GuestIdle::kNoDriver : GuestIdle::kOtherDriver;
}

/// That they did not poll is recorded before they do.
GuestIdle HaltPolling::start() const {
  const auto time = read_text(time_file());
  if (!time) return GuestIdle::kNoDriver;
  if (time != kNoTime) return GuestIdle::kPolling;
  if (!replace_file(record(), "", kRecordMode)) return GuestIdle::kRefused;
  return write_text(time_file(), kTime) == 0 ? GuestIdle::kPolling : GuestIdle::kRefused;
}

/// A time that others have written since stays.
void HaltPolling::stop() const {
  std::error_code none;
  if (!std::filesystem::exists(record(), none)) return;
  const bool is_ours = read_text(time_file()) == kTime;
  if (is_ours && write_text(time_file(), kNoTime) != 0) return;
  std::filesystem::remove(record(), none);
}

/// Of cpuidle; none in most guests.
std::string HaltPolling::driver() const {
  const auto file = roots_.sys / "devices/system/cpu/cpuidle/current_driver";
  return read_text(file).value_or(kNoDriver);
}

/// A parameter of the governor, which the driver brings into use.
std::filesystem::path HaltPolling::time_file() const {
  return roots_.sys / "module/haltpoll/parameters/guest_halt_poll_ns";
}

std::filesystem::path HaltPolling::record() const { return roots_.run / "kata-affinity/haltpoll"; }

}  // namespace ka::agent
