// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/halt_polling.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/unit/guest-agent/guest_scene.hpp"

using namespace ka;
using policy::GuestIdle;

namespace {

constexpr const char* kDriver = "sys/devices/system/cpu/cpuidle/current_driver";
constexpr const char* kTime = "sys/module/haltpoll/parameters/guest_halt_poll_ns";
constexpr const char* kRecord = "run/kata-affinity/haltpoll";

/// A guest that was booted with the driver, switched off.
struct Guest : tests::GuestScene {
  Guest() {
    files.write(kDriver, "haltpoll\n");
    files.write(kTime, "0\n");
  }

  /// As a new agent does it.
  GuestIdle poll(bool wanted) const { return agent::HaltPolling(roots()).poll(wanted); }
  bool has_record() const { return std::filesystem::exists(path(kRecord)); }
};

}  // namespace

TEST_CASE("idle vCPUs poll while they are to, and stop at the request of another agent") {
  const Guest guest;
  CHECK(guest.poll(false) == GuestIdle::kAsBefore);
  CHECK(guest.read(kTime) == "0");
  CHECK(guest.poll(true) == GuestIdle::kPolling);
  CHECK(guest.read(kTime) == "200000");
  CHECK(guest.has_record());
  CHECK(guest.poll(true) == GuestIdle::kPolling);
  CHECK(guest.poll(false) == GuestIdle::kAsBefore);
  CHECK(guest.read(kTime) == "0");
  CHECK_FALSE(guest.has_record());
}

TEST_CASE("a guest whose idle vCPUs poll anyway is left alone") {
  const Guest guest;
  guest.files.write(kTime, "50000\n");
  CHECK(guest.poll(true) == GuestIdle::kPolling);
  CHECK(guest.poll(false) == GuestIdle::kAsBefore);
  CHECK(guest.read(kTime) == "50000");
}

TEST_CASE("a time that another program has written since stays") {
  const Guest guest;
  guest.poll(true);
  guest.files.write(kTime, "50000\n");
  CHECK(guest.poll(false) == GuestIdle::kAsBefore);
  CHECK(guest.read(kTime) == "50000");
  CHECK_FALSE(guest.has_record());
}

TEST_CASE("a guest that was booted without the driver is as before") {
  const Guest guest;
  SECTION("without any") {
    guest.files.write(kDriver, "none\n");
    CHECK(guest.poll(true) == GuestIdle::kNoDriver);
  }
  SECTION("without cpuidle") {
    std::filesystem::remove_all(guest.path("sys"));
    CHECK(guest.poll(true) == GuestIdle::kNoDriver);
  }
  SECTION("with another one") {
    guest.files.write(kDriver, "intel_idle\n");
    CHECK(guest.poll(true) == GuestIdle::kOtherDriver);
  }
  SECTION("without a place for the record") {
    guest.files.write("run/kata-affinity", "a file");
    CHECK(guest.poll(true) == GuestIdle::kRefused);
  }
  CHECK_FALSE(guest.has_record());
  CHECK(guest.read(kTime) != "200000");
  CHECK(guest.poll(false) == GuestIdle::kAsBefore);
}

TEST_CASE("the agent lets idle vCPUs poll when the host requests it, until it releases the guest") {
  const Guest guest;
  guest.cpus({0, 1});
  agent::Agent agent(guest.roots(), guest.threads);
  const auto finish = [&] {
    while (agent.run_background()) {
    }
    return agent.report().idle;
  };
  agent.apply({});
  CHECK(finish() == GuestIdle::kAsBefore);
  const auto before = agent.report().generation;
  agent.apply({.halt_poll = true});
  CHECK(finish() == GuestIdle::kPolling);
  CHECK(agent.report().generation > before);
  agent.apply({.move_interrupts = false, .release = true});
  CHECK(finish() == GuestIdle::kAsBefore);
  CHECK(guest.read(kTime) == "0");
}
