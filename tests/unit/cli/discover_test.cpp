// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/managed/discover.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "tests/catch.hpp"

using namespace ka;

TEST_CASE("discover counts the CPUs of each pool, as labels can have them", "[cli]") {
  const auto node =
      boost::json::parse(
          R"({"enabled":true,"observe":false,"shared_pool":"0-1,6","exclusive":"2-3"})")
          .as_object();
  CHECK(cli::describe_features(cli::make_features(node, std::nullopt)) ==
        "kata-affinity.io/mode=follow\n"
        "kata-affinity.io/cpus-exclusive=2\n"
        "kata-affinity.io/cpus-shared=3\n");
  const auto pools = boost::json::parse(R"({"exclusive":"2-3","available":"1,6","shared":"0-1,6",
    "kept_shared":"0","infra":"7"})")
                         .as_object();
  CHECK(cli::describe_features(cli::make_features(node, pools)) ==
        "kata-affinity.io/mode=managed\n"
        "kata-affinity.io/cpus-exclusive=2\n"
        "kata-affinity.io/cpus-shared=3\n"
        "kata-affinity.io/cpus-infra=1\n"
        "kata-affinity.io/cpus-reserved=1\n"
        "kata-affinity.io/cpus-free=2\n");
  const std::chrono::system_clock::time_point expires{std::chrono::seconds(1800000000)};
  CHECK(cli::describe_features({{"mode", "off"}}, expires) ==
        "# +expiry-time=2027-01-15T08:00:00.000Z\nkata-affinity.io/mode=off\n");
  CHECK(cli::make_features({{"enabled", true}, {"observe", true}}, std::nullopt).at("mode") ==
        "observe");
  CHECK(cli::make_features({{"enabled", false}}, std::nullopt).at("mode") == "off");
}
