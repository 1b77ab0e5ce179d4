// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/guest_affinity.hpp"

#include <fmt/format.h>

#include "tests/catch.hpp"
#include "tests/text.hpp"
#include "tests/unit/cli/selftest/scene.hpp"

using namespace ka;
using namespace ka::cli::selftest;
using tests::contains;
using tests::cpus;

namespace {

/// As a guest prints it whose CPUs 0, 6 and 7 have the APIC ids 0, 12 and 14.
std::string printed(const std::string& allowed) {
  std::string text = "Name:\tapp\nCpus_allowed:\tc1\nCpus_allowed_list:\t" + allowed + "\n";
  for (const auto& [number, apic_id] : std::map<int, int>{{0, 0}, {6, 12}, {7, 14}}) {
    text +=
        fmt::format("processor\t: {}\nmodel name\t: QEMU\ninitial apicid\t: 99\napicid\t\t: {}\n\n",
                    number, apic_id);
  }
  return text;
}

Reading with_vcpus() {
  Reading reading;
  reading.own = {{10, "vCPU", cpus("0-1"), 0},
                 {11, "vCPU", cpus("2"), 14},
                 {12, "vCPU", cpus("3"), 12},
                 {13, "VMM", cpus("0-1"), {}}};
  return reading;
}

Finding found_for(const std::string& allowed, const Reading& reading = with_vcpus()) {
  return check_guest(*parse_guest_affinity(printed(allowed)), reading, cpus("2-3"));
}

}  // namespace

TEST_CASE("self-test, guest: on its dedicated vCPUs, by their APIC ids") {
  const Finding found = found_for("6-7");
  CHECK(found.level == Finding::Level::kHolds);
  CHECK(found.by == Finding::By::kGuest);
  CHECK(contains(found.text, "guest CPUs 6-7 of 0,6-7, whose vCPUs run on CPUs 2-3, its own"));
}

TEST_CASE("self-test, guest: a container held on the floating vCPU is a violation") {
  CHECK(found_for("0").level == Finding::Level::kBroken);
  CHECK(contains(found_for("0").text, "run on CPUs 0-1; its own are 2-3"));
  CHECK(found_for("7").level == Finding::Level::kBroken);
}

TEST_CASE("self-test, guest: one that may run on every vCPU is degraded") {
  CHECK(found_for("0-7").level == Finding::Level::kDegraded);
  // The floating vCPU is confined to the pod's own CPUs.
  Reading confined = with_vcpus();
  confined.own[0].cpus = cpus("2-3");
  CHECK(found_for("0,6-7", confined).level == Finding::Level::kDegraded);
}

TEST_CASE("self-test, guest: what does not fit is not seen") {
  Reading other = with_vcpus();
  other.own[1].apic_id = 7;
  CHECK(found_for("6-7", other).level == Finding::Level::kNotSeen);
  for (const std::string& text :
       {std::string(), printed("6-5"), std::string("Cpus_allowed_list:\t0\n"),
        printed("6-7") + "processor\t: 7\napicid\t: 3\n", printed("6-7") + "processor\t: x\n",
        printed("6-7") + "processor\t: 99999\n", "apicid\t: 3\n" + printed("6-7"),
        std::string("processor\t: 0\napicid\t: 0\n")}) {
    CAPTURE(text);
    CHECK_FALSE(parse_guest_affinity(text));
  }
}
