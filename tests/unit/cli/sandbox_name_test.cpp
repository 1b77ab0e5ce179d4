// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/client/sandbox_name.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cerrno>

#include "tests/catch.hpp"

using namespace ka;

namespace {

std::vector<cli::Named> known() {
  return cli::sandboxes_of(boost::json::parse(R"({"sandboxes":[
    {"id":"4f21aa","pod_name":"shop/cart"},
    {"id":"4f21ab","pod_name":"shop/cart-db"},
    {"id":"cart","pod_name":"jobs/nightly"},
    {"id":"77","pod_name":"jobs/cart-db"},
    {"id":"by-hand"}]})"));
}

std::string found(const std::string& given) {
  const auto id = cli::resolve(known(), given);
  return id ? *id : id.error().message;
}

}  // namespace

TEST_CASE("a sandbox is found by id, pod, namespace/pod and unique prefix") {
  CHECK(found("4f21aa") == "4f21aa");
  CHECK(found("shop/cart") == "4f21aa");
  CHECK(found("nightly") == "cart");
  CHECK(found("by") == "by-hand");
  CHECK(found("jobs/c") == "77");
  CHECK(found("cart") == "cart");  // an id wins over the names of pods
}

TEST_CASE("an ambiguous name is an error that lists the matches") {
  CHECK(found("4f21").find("4f21aa (shop/cart), 4f21ab (shop/cart-db)") != std::string::npos);
  CHECK(found("cart-db").find("4f21ab (shop/cart-db), 77 (jobs/cart-db)") != std::string::npos);
}

TEST_CASE("completion offers no name that is ambiguous or another sandbox's id") {
  CHECK(cli::unambiguous(known()) ==
        std::vector<std::string>{"4f21aa", "shop/cart", "4f21ab", "shop/cart-db", "cart",
                                 "jobs/nightly", "nightly", "77", "jobs/cart-db", "by-hand"});
  CHECK(cli::unambiguous({{"app", {"app"}}}) == std::vector<std::string>{"app"});
}

TEST_CASE("an unknown name is passed to the daemon") { CHECK(found("nobody") == "nobody"); }

TEST_CASE("a container is found by id, name and unique prefix") {
  const auto known = cli::containers_of(boost::json::parse(
      R"({"id":"s","containers":[{"id":"c1","name":"app"},{"id":"c2","name":"apt"},{"id":"d"}]})"));
  CHECK(cli::resolve(known, "app") == "c1");
  CHECK(cli::resolve(known, "d") == "d");
  CHECK_FALSE(cli::resolve(known, "ap"));
}

TEST_CASE("no daemon, not root and no permission are three messages, each with a remedy") {
  const std::string gone = cli::connect_advice("/s", ENOENT, true);
  CHECK(gone == cli::connect_advice("/s", ECONNREFUSED, false));
  CHECK(gone.find("not running") != std::string::npos);
  CHECK(gone.find("systemctl start kata-affinityd") != std::string::npos);
  const std::string user = cli::connect_advice("/s", EACCES, false);
  CHECK(user.starts_with("not root: /s"));
  CHECK(user.find("sudo") != std::string::npos);
  const std::string denied = cli::connect_advice("/s", EACCES, true);
  CHECK(denied.starts_with("permission denied"));
  CHECK(denied.find("journalctl") != std::string::npos);
}
