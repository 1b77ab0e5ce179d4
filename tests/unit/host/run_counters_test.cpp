// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/run_counters.hpp"

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;

TEST_CASE("counters of CPUs are read from schedstat and interrupts") {
  const tests::TempDir proc;
  proc.write("schedstat",
             "version 17\ntimestamp 4294900000\n"
             "cpu0 0 0 0 0 0 0 111 22 33\n"
             "domain0 SMT 3 0 0 0\n"
             "cpu10 1 0 2 3 4 5 444 55 66\n");
  proc.write("interrupts",
             "           CPU0       CPU10\n"
             "   0:         35          0   IO-APIC   2-edge      timer\n"
             "  24:          5          7   PCI-MSIX-0000:00:01.0   0-edge      nvme0q0\n"
             "  31:        900        901   PCI-MSIX-0000:01:00.0   0-edge      "
             "vfio-msix[0](0000:01:00.0)\n"
             " NMI:          1          1   Non-maskable interrupts\n"
             " LOC:      70000      80000   Local timer interrupts\n"
             " ERR:          3\n");
  const auto counters = host::cpu_counters(proc.path());
  REQUIRE(counters);
  REQUIRE(counters->size() == 2);
  CHECK(counters->at(0).ran == 111);
  CHECK(counters->at(0).slices == 33);
  CHECK(counters->at(0).interrupts == 40);
  CHECK(counters->at(10).ran == 444);
  CHECK(counters->at(10).interrupts == 7);
  CHECK(counters->at(0).passed_through == 900);
  CHECK(counters->at(10).passed_through == 901);
}

TEST_CASE("what is no counter counts nothing") {
  const tests::TempDir proc;
  CHECK(host::cpu_counters(proc.path()).error().code == base::ErrorCode::kUnavailable);
  proc.write("schedstat", "version 15\n");
  CHECK(host::cpu_counters(proc.path()).error().code == base::ErrorCode::kUnavailable);
  proc.write("schedstat",
             "cpu0 1 2\ncpu 0 0 0 0 0 0 1 2 3\ncpu1 0 0 0 0 0 0 x 2 3\n   \n"
             "cpu99999999999 0 0 0 0 0 0 1 2 3\ncpu2 0 0 0 0 0 0 1 2 3\n");
  proc.write("interrupts", "CPU2 CPUx\n 1:\n 2: x 5\n 3: 4\n:: 3\n   \n");
  const auto counters = host::cpu_counters(proc.path());
  REQUIRE(counters);
  REQUIRE(counters->size() == 1);
  CHECK(counters->at(2).interrupts == 4);
}

TEST_CASE("counters of a thread are three numbers, or none") {
  const tests::TempDir proc;
  const policy::ThreadKey key{.pid = 7, .tid = 8};
  CHECK_FALSE(host::thread_counters(proc.path(), key));
  proc.write("7/task/8/schedstat", "1000 200 30\n");
  const auto counters = host::thread_counters(proc.path(), key);
  REQUIRE(counters);
  CHECK(counters->ran == 1000);
  CHECK(counters->waited == 200);
  CHECK(counters->slices == 30);
  for (const char* text : {"", "\n", "1 2\n", "1 2 3 4\n", "1 2 x\n", "-1 2 3\n"}) {
    proc.write("7/task/8/schedstat", text);
    CHECK_FALSE(host::thread_counters(proc.path(), key));
  }
}
