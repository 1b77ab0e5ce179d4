#include <cerrno>

#include "affinity/engine/engine.hpp"
#include "tests/catch.hpp"
#include "tests/unit/engine/scene.hpp"

using namespace ka;
using tests::EngineScene;

TEST_CASE("what was placed before observe is given back when someone asks for it") {
  EngineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  engine::Options options;
  options.observe = true;
  scene.engine().configure(options);
  CHECK(scene.cpus(111) == "4");
  REQUIRE(scene.engine().release("s1"));
  CHECK(scene.cpus(111) == "0-7");
  CHECK(scene.engine().reconcile("s1")->writes == 0);
}

TEST_CASE("release gives back what a thread would have without us, until reconcile") {
  EngineScene scene;
  scene.boot_vm(100, 3);
  scene.boot_vm(200, 1);
  scene.calls.own[200] = {6, 7};
  scene.calls.own[210] = {6, 7};
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.add("s2", 200));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  REQUIRE(scene.container("s2", "app", {1}, false));
  CHECK(scene.cpus(210) == "1");
  scene.start();
  scene.engine().adopt();
  scene.engine().release_all();
  for (const int tid : {100, 101, 110, 111, 112}) CHECK(scene.cpus(tid) == "0-7");
  CHECK(scene.cpus(210) == "6-7");
  scene.engine().check_drift();
  scene.engine().look_again("s1");
  CHECK(scene.cpus(111) == "0-7");
  REQUIRE(scene.engine().reconcile("s1"));
  CHECK(scene.cpus(111) == "4");
}

TEST_CASE("what somebody does with threads that were given back is left alone, until reconcile") {
  EngineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  REQUIRE(scene.engine().release("s1"));
  scene.calls.own[111] = {2};
  CHECK(scene.engine().look_again("s1").writes == 0);
  CHECK(scene.engine().check_drift().writes == 0);
  CHECK(scene.engine().counters().drift_found == 0);
  scene.start();
  scene.engine().adopt();
  CHECK(scene.cpus(111) == "2");
  REQUIRE(scene.engine().reconcile("s1"));
  CHECK(scene.cpus(111) == "4");
  REQUIRE(scene.engine().release("s1"));
  CHECK(scene.cpus(111) == "0-7");
}

TEST_CASE("giving back is tried again where the kernel did not do it, but not for a domain") {
  for (const bool is_domain : {false, true}) {
    EngineScene scene;
    scene.boot_vm(100, 3);
    REQUIRE(scene.engine().submit(
        {policy::Source::kApi,
         policy::PodSeen{.id = "s1", .vmm_pid = 100, .domain = is_domain ? "vm1" : ""}}));
    REQUIRE(scene.container("s1", "app", {4, 5}, true));
    scene.calls.set_faults[111] = {EBUSY, 1000};
    REQUIRE(scene.engine().release("s1"));
    CHECK(scene.cpus(111) == "4");
    scene.calls.set_faults.clear();
    scene.engine().look_again("s1");
    CHECK(scene.cpus(111) == (is_domain ? "4" : "0-7"));
  }
}

TEST_CASE("enable = false and removal release too") {
  EngineScene scene;
  scene.boot_vm(100, 3);
  scene.boot_vm(200, 1);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  REQUIRE(scene.add("s2", 200));
  REQUIRE(scene.container("s2", "c", {6}, false));
  REQUIRE(scene.remove("s2"));
  CHECK(scene.cpus(210) == "0-7");
  engine::Options off;
  off.enable = false;
  scene.engine().configure(off);
  CHECK(scene.cpus(111) == "0-7");
}
