// SPDX-License-Identifier: Apache-2.0
// `pools` and `class`: the text, and what names stand for.
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/managed/pools_text.hpp"
#include "affinity/cli/managed/target.hpp"
#include "tests/catch.hpp"

using namespace ka;

namespace {

boost::json::value pools() {
  return boost::json::parse(R"({"exclusive":"4-5", "available":"2-3,6-7", "shared":"0-3,6-7",
    "kept_shared":"0-1", "infra":"", "containers":[
    {"id":"c1","pod":"4f21","pod_name":"shop/cart","name":"app","pool":"exclusive",
     "class":"exclusive","cpus":"4-5","adopted":false},
    {"id":"c2","pod":"4f21","pod_name":"shop/cart","name":"sidecar","pool":"shared",
     "class":"none","cpus":"0-3,6-7","adopted":true},
    {"id":"c3","pod":"77aa","pod_name":"jobs/big","name":"main","pool":"shared","class":"none",
     "cpus":"0-3,6-7","adopted":false,"problem":"not-enough",
     "reason":"6 CPUs requested, 4 available","remedy":"ask for fewer"}]})");
}

/// "POD CONTAINER" of a name, or the error.
std::string found(const std::string& given) {
  const auto target = cli::find_target(pools(), given);
  if (!target) return target.error().message;
  return target->pod + ' ' + target->container.value_or("(all)");
}

}  // namespace

TEST_CASE("pools shows each pool, what is free, and who has what, and why not more", "[cli]") {
  CHECK(cli::describe_pools(pools()) ==
        "POOL       CPUS     CONTAINERS\n"
        "exclusive  4-5      1\n"
        "shared     0-3,6-7  2\n"
        "infra      -        0\n"
        "\n"
        "free for exclusive containers: 2-3,6-7\n"
        "always shared: 0-1\n"
        "\n"
        "POD        CONTAINER  CLASS      POOL       CPUS\n"
        "jobs/big   main       none       shared     0-3,6-7\n"
        "  ! not-enough: 6 CPUs requested, 4 available\n"
        "    -> ask for fewer\n"
        "shop/cart  app        exclusive  exclusive  4-5\n"
        "shop/cart  sidecar    none       shared     0-3,6-7  adopted\n");
}

TEST_CASE("pools says that there are no containers, and that allocations are not on disk",
          "[cli]") {
  CHECK(cli::describe_pools(boost::json::parse(
            R"({"exclusive":"","available":"","shared":"0-7","kept_shared":"0","infra":"",
                "containers":[],"unsaved":"allocations: no space left on device"})")) ==
        "POOL       CPUS  CONTAINERS\n"
        "exclusive  -     0\n"
        "shared     0-7   0\n"
        "infra      -     0\n"
        "\n"
        "free for exclusive containers: -\n"
        "always shared: 0\n"
        "! allocations are not on disk: allocations: no space left on device\n"
        "\n"
        "no containers\n");
}

TEST_CASE("class names a pod or one of its containers, by any name or prefix", "[cli]") {
  CHECK(found("shop/cart") == "4f21 (all)");
  CHECK(found("cart") == "4f21 (all)");
  CHECK(found("4f") == "4f21 (all)");
  CHECK(found("shop/cart/app") == "4f21 app");
  CHECK(found("cart/side") == "4f21 sidecar");
  CHECK(found("4f21/c2") == "4f21 sidecar");
  CHECK(found("77aa/main") == "77aa main");
}

TEST_CASE("class says which name it does not know, and where to look", "[cli]") {
  CHECK(found("nobody") ==
        "no container of a pod \"nobody\" gets its CPUs from kata-affinity; `kata-affinityctl "
        "pools` lists those that do");
  CHECK(found("shop/nobody/app") ==
        "no container of a pod \"shop/nobody\" gets its CPUs from kata-affinity; "
        "`kata-affinityctl pools` lists those that do");
  CHECK(found("cart/db") == "no container \"db\" in pod \"cart\"; it has: app, sidecar");
  CHECK(found("cart/c") ==
        "\"c\" is ambiguous, it matches: app (c1), sidecar (c2); use more of the name, or the id");
}

TEST_CASE("a container is meant by its pod, or by pod and name", "[cli]") {
  const boost::json::value all = pools();
  const boost::json::array& containers = cli::array_of(all, "containers");
  CHECK(cli::is_meant({"4f21", std::nullopt}, containers.at(0)));
  CHECK(cli::is_meant({"4f21", "sidecar"}, containers.at(1)));
  CHECK_FALSE(cli::is_meant({"4f21", "sidecar"}, containers.at(0)));
  CHECK_FALSE(cli::is_meant({"4f21", std::nullopt}, containers.at(2)));
}
