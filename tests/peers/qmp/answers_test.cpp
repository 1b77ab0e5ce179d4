// SPDX-License-Identifier: Apache-2.0
#include "vmm/qmp/answers.hpp"

#include <boost/json/parse.hpp>

#include "tests/catch.hpp"

using namespace ka;
using namespace ka::qmp;

namespace {

boost::json::value parse(const std::string& text) { return boost::json::parse(text); }

/// QEMU 7.2, -smp 2,maxcpus=4,sockets=2,cores=1,threads=2, after device_add of the last vCPU.
const std::string kCpus = R"([
  {"thread-id": 101, "props": {"core-id": 0, "thread-id": 0, "socket-id": 0},
   "qom-path": "/machine/unattached/device[0]", "cpu-index": 0, "target": "x86_64"},
  {"thread-id": 102, "props": {"core-id": 0, "thread-id": 1, "socket-id": 0},
   "qom-path": "/machine/unattached/device[2]", "cpu-index": 1, "target": "x86_64"},
  {"thread-id": 103, "props": {"core-id": 0, "thread-id": 1, "socket-id": 1, "node-id": 1},
   "qom-path": "/machine/peripheral/cpu3", "cpu-index": 3, "target": "x86_64"}])";
const std::string kSlots = R"([
  {"props": {"core-id": 0, "thread-id": 1, "socket-id": 1}, "vcpus-count": 1,
   "qom-path": "/machine/peripheral/cpu3", "type": "t"},
  {"props": {"core-id": 0, "thread-id": 0, "socket-id": 1}, "vcpus-count": 1, "type": "t"},
  {"props": {"core-id": 0, "thread-id": 1, "socket-id": 0}, "vcpus-count": 1,
   "qom-path": "/machine/unattached/device[2]", "type": "t"},
  {"props": {"core-id": 0, "thread-id": 0, "socket-id": 0}, "vcpus-count": 1,
   "qom-path": "/machine/unattached/device[0]", "type": "t"}])";

}  // namespace

TEST_CASE("QEMU's responses become facts") {
  const auto cpus = read_cpus(parse(kCpus));
  const auto slots = read_slots(parse(kSlots));
  const auto iothreads =
      read_iothreads(parse(R"([{"id": "io2", "thread-id": 9}, {"id": "io1", "thread-id": 8}])"));
  REQUIRE(cpus);
  REQUIRE(slots);
  REQUIRE(iothreads);
  const vmm::MonitorFacts facts =
      compose(*cpus, *slots, {{"/machine/peripheral/cpu3", 3}}, *iothreads);
  CHECK(facts.source == "qmp");
  REQUIRE(facts.vcpus.size() == 3);
  CHECK(facts.vcpus[1].facts ==
        policy::VcpuFacts{.index = 1, .apic_id = {}, .socket = 0, .core = 0, .thread = 1});
  CHECK(
      facts.vcpus[2].facts ==
      policy::VcpuFacts{.index = 3, .apic_id = 3, .socket = 1, .core = 1, .thread = 1, .numa = 1});
  CHECK(facts.vcpus[2].tid == 103);
  CHECK(facts.iothreads[0].id == "io1");
}

TEST_CASE("a core keeps its number when vCPUs below it are plugged") {
  const auto slots = read_slots(parse(
      R"([{"props": {"core-id": 0, "socket-id": 2}}, {"props": {"core-id": 0, "socket-id": 1}},
          {"props": {"core-id": 0, "socket-id": 0}}])"));
  const auto last = read_cpus(parse(
      R"([{"cpu-index": 2, "thread-id": 5, "qom-path": "/c", "props": {"core-id": 0, "socket-id": 2}}])"));
  CHECK(compose(*last, *slots, {}, {}).vcpus[0].facts.core == 2);
}

TEST_CASE("without a position a vCPU is a core of its own; the slot may give the position") {
  const auto cpus = read_cpus(parse(
      R"([{"cpu-index": 4, "thread-id": 5, "qom-path": "/c"}, {"cpu-index": 5, "thread-id": 6, "qom-path": "/d"}])"));
  const auto slots = read_slots(
      parse(R"([{"props": {"core-id": 1, "socket-id": 0, "thread-id": 1}, "qom-path": "/d"}])"));
  const auto facts = compose(*cpus, *slots, {}, {});
  CHECK(facts.vcpus[0].facts == policy::VcpuFacts{.index = 4, .apic_id = {}, .core = 4});
  CHECK(facts.vcpus[1].facts.thread == 1);
}

TEST_CASE("responses of an unexpected form are errors") {
  for (const std::string text :
       {"{}", "[1]", "[{}]", R"([{"cpu-index": -1, "thread-id": 5, "qom-path": "/c"}])",
        R"([{"cpu-index": 8192, "thread-id": 5, "qom-path": "/c"}])",
        R"([{"cpu-index": 0, "thread-id": 0, "qom-path": "/c"}])",
        R"([{"cpu-index": 0, "thread-id": 99999999999, "qom-path": "/c"}])",
        R"([{"cpu-index": "0", "thread-id": 5, "qom-path": "/c"}])",
        R"([{"cpu-index": 0, "thread-id": 5}])"}) {
    CAPTURE(text);
    CHECK_FALSE(read_cpus(parse(text)));
  }
  CHECK_FALSE(read_iothreads(parse(R"([{"id": "", "thread-id": 5}])")));
  CHECK_FALSE(read_iothreads(parse(R"([{"id": "a"}])")));
  CHECK_FALSE(read_slots(parse(R"([{"type": "x"}])")));
  CHECK_FALSE(read_apic_id(parse("\"1\"")));
  CHECK_FALSE(read_apic_id(parse("4294967295")));
  CHECK(*read_apic_id(parse("12")) == 12);
}
