// SPDX-License-Identifier: Apache-2.0
// `plan --pod`: what a manifest asks for, and what is said of it.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/managed/manifest.hpp"
#include "affinity/cli/managed/trial.hpp"
#include "tests/catch.hpp"

using namespace ka;
namespace json = boost::json;

namespace {

std::string quantity(const std::string& text) {
  const auto parsed = cli::parse_quantity(text);
  return parsed ? std::to_string(*parsed) : parsed.error().message;
}

std::string trial(const std::string& manifest) {
  const auto body = cli::trial_of(json::parse(manifest));
  return body ? json::serialize(json::value(*body)) : body.error().message;
}

std::string pod(const std::string& limits, const std::string& requests = "{}") {
  return R"({"kind":"Pod","metadata":{"name":"cart","namespace":"shop"},"spec":{"containers":[)"
         R"({"name":"app","resources":{"limits":)" +
         limits + R"(,"requests":)" + requests + "}}]}}";
}

}  // namespace

TEST_CASE("quantities are those of Kubernetes", "[cli]") {
  CHECK(quantity("2") == "2000");
  CHECK(quantity("0.5") == "500");
  CHECK(quantity("1500m") == "1500");
  CHECK(quantity("100u") == "1");
  CHECK(quantity("1Ki") == "1024000");
  CHECK(quantity("2e3") == "2000000");
  CHECK(quantity("4Gi") == std::to_string((std::int64_t{4} << 30) * 1000));
  for (const char* text :
       {"", "-1", "+1", "1 Gi", "Gi", "1.2.3", "9999999999999P", "nan", "inf", "0x10", "1GiB"}) {
    CAPTURE(text);
    CHECK(quantity(text) == '"' + std::string(text) + "\" is not a quantity");
  }
}

TEST_CASE("a manifest is tried with its limits, its class and its quality of service", "[cli]") {
  CHECK(trial(pod(R"({"cpu":"2","memory":"1Ki"})")) ==
        R"({"pod_name":"shop/cart","guaranteed":true,"containers":[{"name":"app",)"
        R"("quota":200000,"period":100000,"memory":1024}]})");
  CHECK(trial(pod(R"({"cpu":2,"memory":"1Ki"})", R"({"cpu":"1"})")).find(R"("guaranteed":false)") !=
        std::string::npos);
  CHECK(trial(pod(R"({"cpu":"2"})")).find(R"("guaranteed":false)") != std::string::npos);
  CHECK(trial(pod(R"({"cpu":"2","memory":"1Ki"})", R"({"cpu":"2000m"})"))
            .find(R"("guaranteed":true)") != std::string::npos);
  CHECK(trial(pod(R"({"cpu":"1","memory":"1Ki","hugepages-2Mi":"4Mi"})"))
            .find(R"("huge_pages":[{"page":2097152,"bytes":4194304}])") != std::string::npos);
  SECTION("init containers come first, and restartable ones stay") {
    CHECK(trial(R"({"kind":"Pod","metadata":{"name":"p","annotations":
             {"kata-affinity.io/cpu-manager":"share","kata-affinity.io/cpu-manager.a":"none"}},
             "spec":{"containers":[{"name":"a"}],"initContainers":[{"name":"i"},
             {"name":"s","restartPolicy":"Always"}]}})") ==
          R"({"pod_name":"default/p","guaranteed":false,"containers":[)"
          R"({"name":"i","class":"share","init":true},{"name":"s","class":"share"},)"
          R"({"name":"a","class":"none"}]})");
  }
  SECTION("what is no pod, or no quantity, is named") {
    CHECK(trial(R"({"kind":"Deployment","spec":{}})").starts_with("not a pod with containers"));
    CHECK(trial("[]").starts_with("not a pod with containers"));
    CHECK(trial(pod(R"({"hugepages-x":"1Mi"})")) == R"("x" is not a quantity)");
    CHECK(trial(pod(R"({"cpu":"two"})")) ==
          R"(container app: limits.cpu: "two" is not a quantity)");
  }
}

TEST_CASE("the answer says where a pod would run and whom it would move", "[cli]") {
  CHECK(cli::describe_trial(json::parse(R"({"fits":true,"refused":false,"containers":[
          {"pod_name":"shop/cart","name":"app","class":"exclusive","pool":"exclusive",
           "cpus":"2-3"}],"moves":[{"pod":"77","pod_name":"jobs/big","name":"main",
           "from":"0-3","to":"0-1"}]})")) ==
        "fits\n\n"
        "POD        CONTAINER  CLASS      POOL       CPUS\n"
        "shop/cart  app        exclusive  exclusive  2-3\n"
        "\nmoves:\n  jobs/big main: 0-3 -> 0-1\n");
  CHECK(cli::describe_trial(json::parse(R"({"fits":false,"refused":true,"containers":[],
          "moves":[]})"))
            .starts_with("does not fit, and would not be created\n"));
}
