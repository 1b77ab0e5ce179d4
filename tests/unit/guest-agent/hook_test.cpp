// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/hook.hpp"

#include "guest-agent/agent/agent.hpp"
#include "guest-agent/agent/state_text.hpp"
#include "tests/catch.hpp"
#include "tests/unit/guest-agent/guest_scene.hpp"

using namespace ka;

TEST_CASE("a container's id is read from a hook's state") {
  CHECK(agent::id_in_state(R"({"ociVersion":"1.0","id":"c-1.a_b","status":"created","pid":7,
    "bundle":"/run/x","annotations":{"id":"not this","a":[1,{"b":"\"}"}],"c":null}})") ==
        "c-1.a_b");
  CHECK(agent::id_in_state(R"( { "annotations" : {} , "id" : "x" } )") == "x");
}

TEST_CASE("an invalid state has no id") {
  for (const char* text :
       {"", "{", "{}", "[]", R"({"id":7})", R"({"id":""})", R"({"id":"a/b"})", R"({"id":"a)",
        R"({"id":"a","b")", R"({"id":"a","b":})", R"({"id":"a","b":[1,})", R"({"pid":1})"}) {
    CHECK_FALSE(agent::id_in_state(text));
  }
  CHECK_FALSE(agent::id_in_state(R"({"id":")" + std::string(200, 'a') + "\"}"));
  CHECK_FALSE(agent::id_in_state(R"({"a":)" + std::string(100000, '[')));
}

TEST_CASE("hooks are known by kata-agent's names") {
  CHECK(agent::hook_named("prestart") == agent::Hook::kPrestart);
  CHECK(agent::hook_named("poststop") == agent::Hook::kPoststop);
  CHECK_FALSE(agent::hook_named("poststart"));
}

TEST_CASE(
    "a container that a hook reports is kept off others' vCPUs, whatever its cgroup is called") {
  tests::GuestScene scene;
  scene.cpus({0, 1, 2, 3});
  scene.cgroup("app");
  agent::Agent agent(scene.roots(), scene.threads);
  agent.apply(tests::spec_of(4, {3}, "app"));
  scene.cgroup("late");
  agent.cgroups_changed();
  CHECK(scene.read("cgroup/late/cpuset.cpus") == "");  // it could be anything
  agent.record_container("late", false);
  CHECK(scene.read("cgroup/late/cpuset.cpus") == "0-2");
  CHECK(scene.read("cgroup/app/cpuset.cpus") == "3");
  agent.record_container("app", false);  // the host named it before
  CHECK(scene.read("cgroup/app/cpuset.cpus") == "3");
  agent.record_container("late", true);
  CHECK(agent.places_to_watch().size() > 1);
}
