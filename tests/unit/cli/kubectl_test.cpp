// SPDX-License-Identifier: Apache-2.0
// `kubectl affinity` without kubectl: what it is asked for, where it runs, and what it makes of the
// answers.
#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <sstream>
#include <vector>

#include "affinity/cli/kubectl/fleet.hpp"
#include "affinity/cli/kubectl/plugin.hpp"
#include "affinity/cli/kubectl/plugin_options.hpp"
#include "affinity/cli/kubectl/readers.hpp"
#include "tests/catch.hpp"

using namespace ka;
using namespace ka::cli::kubectl;
using Words = std::vector<std::string>;

namespace {

struct Parsed {
  Expected<PluginOptions, cli::Exit> options;
  std::string out, err;
};

Parsed parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "kubectl-affinity");
  std::ostringstream out, err;
  auto options = parse_plugin(static_cast<int>(arguments.size()), arguments.data(), out, err);
  return {std::move(options), out.str(), err.str()};
}

Words command_of(std::vector<const char*> arguments, const std::string& pod) {
  const auto parsed = parse(std::move(arguments));
  REQUIRE(parsed.options);
  return command_in_reader(*parsed.options, pod);
}

}  // namespace

TEST_CASE("the plugin is known by the name that kubectl calls") {
  CHECK(is_plugin("kubectl-affinity"));
  CHECK(is_plugin("/root/.krew/bin/kubectl-affinity"));
  CHECK_FALSE(is_plugin("/usr/bin/kata-affinityctl"));
  CHECK_FALSE(is_plugin("kubectl-affinity/kata-affinityctl"));
  CHECK_FALSE(is_plugin(nullptr));
}

TEST_CASE("the plugin's commands about pods name the pod, those about nodes do not") {
  CHECK(command_of({"status", "x"}, "shop/cart") ==
        Words{"kata-affinityctl", "status", "shop/cart"});
  CHECK(command_of({"status", "x", "--json"}, "") == Words{"kata-affinityctl", "status", "--json"});
  CHECK(command_of({"explain", "x"}, "shop/cart") ==
        Words{"kata-affinityctl", "explain", "shop/cart"});
  CHECK(command_of({"explain", "x", "--cpu", "4"}, "shop/cart") ==
        Words{"kata-affinityctl", "explain", "--cpu", "4"});
  CHECK(command_of({"map", "x"}, "shop/cart") == Words{"kata-affinityctl", "map"});
  CHECK(command_of({"verify", "x", "--strict"}, "shop/cart") ==
        Words{"kata-affinityctl", "verify", "--strict"});
  CHECK(command_of({"noise", "x"}, "shop/cart") ==
        Words{"kata-affinityctl", "noise", "shop/cart", "--counters"});
  CHECK(command_of({"noise", "x", "--json"}, "") ==
        Words{"kata-affinityctl", "noise", "--counters", "--json"});
}

TEST_CASE("the plugin offers nothing that changes a node") {
  for (const char* command :
       {"release", "reconcile", "vcpupin", "sandbox", "container", "setup", "class"}) {
    CAPTURE(command);
    CHECK(parse({command, "x"}).options.error() == cli::Exit::kWrong);
  }
}

TEST_CASE("the plugin needs a target or --all, and not both") {
  CHECK(parse({"status"}).err.find("TARGET or --all is required") != std::string::npos);
  CHECK(parse({"map"}).err.find("TARGET is required") != std::string::npos);
  CHECK_FALSE(parse({"status", "x", "--all"}).options);
  CHECK_FALSE(parse({"map", "--all"}).options);
  CHECK(parse({"verify", "--all", "-n", "shop"}).options->pod_namespace == "shop");
}

TEST_CASE("the plugin's help fits a terminal") {
  for (const char* command : {"", "status", "verify", "explain", "map", "noise"}) {
    const auto parsed = *command == 0 ? parse({"--help"}) : parse({command, "--help"});
    CAPTURE(command, parsed.out);
    CHECK(std::ranges::count(parsed.out, '\n') <= 23);
    std::istringstream lines(parsed.out);
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
    CHECK(parsed.out.find("Examples:") != std::string::npos);
  }
}

TEST_CASE("the help of noise says where names are, and does not crowd the list of commands") {
  const std::string where = "`kata-affinityctl noise` on the node";
  CHECK(parse({"noise", "--help"}).out.find(where) != std::string::npos);
  CHECK(parse({"--help"}).out.find(where) == std::string::npos);
}

TEST_CASE("a target is a node, a pod, or either") {
  const auto target_of = [](const std::string& text) {
    const auto target = parse_target(text);
    return target ? std::to_string(static_cast<int>(target->kind)) + ' ' + target->pod_namespace +
                        ' ' + target->name
                  : "refused";
  };
  CHECK(target_of("cart-0") == "0  cart-0");
  CHECK(target_of("node/w3.example.org") == "1  w3.example.org");
  CHECK(target_of("pod/cart-0") == "2  cart-0");
  CHECK(target_of("shop/cart-0") == "2 shop cart-0");
  for (const char* wrong : {"", "/", "shop/", "/cart", "-x", "shop/-x", "-x/cart", "a/b/c", "A",
                            "a b", "a;b", "--help", "a\nb"}) {
    CAPTURE(wrong);
    CHECK(target_of(wrong) == "refused");
  }
}

TEST_CASE("readers are sorted by node, and pods without a node left out") {
  CHECK(parse_readers("b\tr2\tRunning\na\tr1\tPending\n\tr3\tPending\n") ==
        std::vector<Reader>{{"a", "r1", "Pending"}, {"b", "r2", "Running"}});
  CHECK(parse_readers("").empty());
  CHECK(parse_readers("a\n") == std::vector<Reader>{{"a", "", ""}});
}

TEST_CASE("a node is one line: its pods by the worst that was found about each") {
  const auto list = boost::json::parse(R"({"version":"0.1.0","sandboxes":[
    {"id":"s1","containers":[{"exclusive":true,"isolated":true},{"exclusive":false}]},
    {"id":"s2","containers":[{"exclusive":true,"isolated":true},{"exclusive":true,"isolated":false}]},
    {"id":"s3","containers":[{"exclusive":true,"isolated":false}]},
    {"id":"s4","containers":[]}]})");
  const auto report = boost::json::parse(R"({"verdict":"violated","findings":[
    {"severity":"degraded","sandbox":"s2"},{"severity":"degraded","sandbox":"s3"},
    {"severity":"violated","sandbox":"s3"},{"severity":"note","sandbox":"s4"},
    {"severity":"violated"}]})");
  const NodeLine line = summarise("w1", list, report);
  CHECK(line.pods == 4);
  CHECK(line.isolated == 1);
  CHECK(line.degraded == 1);
  CHECK(line.violated == 1);

  const std::vector<NodeLine> nodes = {line, {.node = "worker-2", .problem = "pod r is Pending"}};
  CHECK(describe_fleet(nodes) ==
        "NODE      PODS  ISOLATED  DEGRADED  VIOLATED  VERDICT   VERSION\n"
        "w1           4         1         1         1  violated  0.1.0\n"
        "worker-2     -         -         -         -  unknown   pod r is Pending\n"
        "\n2 nodes: 4 pods, 1 isolated, 1 degraded, 1 violated; 1 could not be read\n");
  CHECK(boost::json::serialize(fleet_to_json(nodes)) ==
        R"({"nodes":[{"node":"w1","pods":4,"isolated":1,"degraded":1,"violated":1,)"
        R"("verdict":"violated","version":"0.1.0"},)"
        R"({"node":"worker-2","verdict":"unknown","problem":"pod r is Pending"}]})");
}

TEST_CASE("a cluster is good when every node is") {
  const NodeLine ok{.node = "a", .verdict = "ok"}, degraded{.node = "b", .verdict = "degraded"};
  CHECK(is_good({ok, degraded}, false));
  CHECK_FALSE(is_good({ok, degraded}, true));
  CHECK_FALSE(is_good({ok, {.node = "c", .verdict = "violated"}}, false));
  CHECK_FALSE(is_good({ok, {.node = "c", .problem = "not there"}}, false));
  CHECK(summarise("old", boost::json::object{}, boost::json::object{}).verdict == "unknown");
}
