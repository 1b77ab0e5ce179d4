// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/map/map_svg.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "tests/catch.hpp"

using namespace ka;

namespace {

std::string draw(const char* node) {
  return cli::draw_svg(cli::read_map(boost::json::parse(node)));
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t number = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++number;
  }
  return number;
}

constexpr const char* kNode = R"({"shared_pool":"0","cpus":[
  {"cpu":0,"shared":true,"owners":[],"vcpus":[],"threads":{"emulator":2,"vcpu":1}},
  {"cpu":1,"owners":[{"pod":"s1","pod_name":"a<b>&/c","container":"c1","name":"app","vm":true}],
   "vcpus":[{"sandbox":"s1","vcpu":3,"container":"c1"}],"threads":{"vcpu":1}},
  {"cpu":2,"owners":[{"pod":"p2","container":"x"},
                     {"pod":"s1","pod_name":"a<b>&/c","container":"c1","name":"app","vm":true}]}],
  "topology":{"cpus":[{"cpu":0,"core":0},{"cpu":1,"core":1},{"cpu":2,"core":1},
                      {"cpu":3,"core":2,"socket":1,"numa":1,"l3":1,"online":false}]}})";

}  // namespace

TEST_CASE("the SVG has every CPU, with text for every colour") {
  const std::string svg = draw(kNode);
  CHECK(count(svg, "data-cpu=") == 4);
  CHECK(count(svg, ">socket ") == 2);
  CHECK(count(svg, ">core ") == 3);
  for (const char* words : {">shared pool<", ">vCPU 3<", ">3 threads<", ">offline<", "conflict",
                            ">shared pool: CPUs 0<", ">AB!<", "vCPU 3 on 1"}) {
    CAPTURE(words);
    CHECK(svg.find(words) != std::string::npos);
  }
}

TEST_CASE("the SVG shows as heat how often others run on a dedicated CPU") {
  const auto with = [](const char* slices) {
    std::string node = kNode;
    node.insert(1, std::string(R"("interruptions":{"problem":"","cpus":[{"cpu":1,"vcpu":3,)") +
                       R"("seconds":1.0,"nanoseconds":1000,"interrupts":0,"slices":)" + slices +
                       "}]},");
    return draw(node.c_str());
  };
  CHECK(count(draw(kNode), "class=\"heat\"") == 0);
  CHECK(count(with("0"), "class=\"heat\"") == 0);
  CHECK(with("99").find("<rect class=\"heat\" y=\"58\" width=\"62\"") != std::string::npos);
  CHECK(with("99").find("others: 99 times, 0.0 ms in 1 s") != std::string::npos);
  CHECK(with("99999999").find("width=\"124\" height=\"4\"") != std::string::npos);
}

TEST_CASE("names are escaped in the SVG") {
  const std::string svg = draw(kNode);
  CHECK(svg.find("a<b>") == std::string::npos);
  CHECK(svg.find("a&lt;b&gt;&amp;/c, container app") != std::string::npos);
}

TEST_CASE("an SVG of an empty node is valid") {
  for (const char* node : {"{}", "3", R"({"cpus":[{}],"topology":{"cpus":[{},7]}})"}) {
    CHECK(draw(node).ends_with("</svg>\n"));
  }
}
