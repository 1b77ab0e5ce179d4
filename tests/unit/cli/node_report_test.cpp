// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/managed/node_report.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "tests/catch.hpp"

using namespace ka;

namespace {

constexpr const char* kVerified = R"({"verdict":"ok","ok":true,"seen":{"sandboxes":1,"threads":4},
    "known":{"sandboxes":1,"threads":4},"findings":[]})";

boost::json::object report(const char* pools, const char* verify = kVerified) {
  return cli::make_node_report(boost::json::parse(pools).as_object(),
                               boost::json::parse(verify).as_object());
}

}  // namespace

TEST_CASE("node-report shows pools, who has what, and checks that passed", "[cli]") {
  const auto made = report(R"({"exclusive":"2-3","available":"1","shared":"0-1","kept_shared":"0",
    "infra":"","containers":[{"id":"c1","pod":"s","pod_name":"shop/a","name":"app",
    "pool":"exclusive","class":"exclusive","cpus":"2-3"}]})");
  CHECK(made.at("passed") == true);
  CHECK(cli::describe_node_report(made) ==
        "POOL       CPUS  CONTAINERS\n"
        "exclusive  2-3   1\n"
        "shared     0-1   0\n"
        "infra      -     0\n"
        "\n"
        "free for exclusive containers: 1\n"
        "always shared: 0\n"
        "\n"
        "POD     CONTAINER  CLASS      POOL       CPUS\n"
        "shop/a  app        exclusive  exclusive  2-3\n"
        "\n"
        "CHECK    RESULT\n"
        "pools    passed  no CPU is in two pools\n"
        "owners   passed  no CPU has two exclusive containers\n"
        "classes  passed  each container has the class that was asked for\n"
        "saved    passed  allocations are on disk\n"
        "kernel   passed  verify: ok\n"
        "\n"
        "verify: ok: 4 of 4 threads in 1 of 1 sandbox read, no violation found\n");
}

TEST_CASE("node-report names what each failed check found", "[cli]") {
  const auto made = report(R"({"exclusive":"2-3","shared":"0-2","infra":"3","unsaved":"disk full",
    "containers":[{"id":"a","pool":"exclusive","cpus":"2-3"},
    {"id":"b","pool":"exclusive","cpus":"3"},
    {"id":"c","pool":"shared","cpus":"0-2","problem":"not-enough"}]})",
                           R"({"verdict":"violated","ok":false})");
  CHECK(made.at("passed") == false);
  const std::string text = cli::describe_node_report(made);
  const std::size_t at = text.find("CHECK ");
  REQUIRE(at != std::string::npos);
  CHECK(text.substr(at, text.find("\n\n", at) - at) ==
        "CHECK    RESULT\n"
        "pools    FAILED  CPUs 2-3 are in two pools\n"
        "owners   FAILED  CPU 3 is given to two exclusive containers\n"
        "classes  FAILED  1 container without the class asked for\n"
        "saved    FAILED  not on disk: disk full\n"
        "kernel   FAILED  verify: violated");
}
