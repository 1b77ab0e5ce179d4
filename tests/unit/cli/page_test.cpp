// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/report/page.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "tests/catch.hpp"

using namespace ka;

namespace {

boost::json::object document(const char* text) { return boost::json::parse(text).as_object(); }

cli::ReportData data() {
  return {
      .host = "node<1>",
      .time = std::chrono::system_clock::time_point(std::chrono::hours(24 * 365)),
      .node = document(R"({"cpus":[],"topology":{"cpus":[{"cpu":0}]}})"),
      .list = document(R"({"sandboxes":[{"id":"s1","pod_name":"shop/<script>alert(1)</script>",
        "vcpus":[{"index":0,"cpus":"0-1","container":""},{"index":1,"cpus":"4","container":"c1"}],
        "containers":[{"id":"c1","name":"app","cpus":"4","isolated":true},
                      {"id":"c2","name":"x","cpus":"5","isolated":false,
                       "obstacles":[{"text":"CPU 5 also carries housekeeping"}]}],
        "threads":[{"tid":111,"role":"vcpu","name":"\"><img src=//evil>","wanted":"4",
                    "actual":"0-7","drift":true},{"tid":112,"role":"emulator"}]}]})"),
      .verify = document(R"({"verdict":"degraded","findings":[{"severity":"degraded",
        "sandbox":"s1","text":"not alone","remedy":"a & b"}]})"),
      .drifts = document(R"({"drifts":[{"time":"2026-01-31T12:00:00.123Z","sandbox":"s1",
        "text":"1 thread was moved"}]})"),
      .waits = document(R"({"threads":[{"sandbox":"s1","tid":111,"nanoseconds":2500000000}]})"),
  };
}

}  // namespace

TEST_CASE("a report has verdict, containers, threads, waits and drifts") {
  const std::string page = cli::draw_page(data());
  for (const char* words :
       {"<p>1971-01-01 00:00:00 UTC</p>", "<p class=\"verdict degraded\">degraded</p>",
        "<td>a &amp; b</td>", "<svg ", "data-cpu=\"0\"",
        "<td>app</td><td>4</td><td>vCPU 1 on 4</td><td>isolated</td>",
        "<td>NOT isolated: CPU 5 also carries housekeeping</td>",
        "<td>4</td><td>0-7</td><td>not as planned</td><td>2.500 s</td>", "<td>not read</td>",
        "<td>2026-01-31T12:00:00.123Z</td><td>s1</td><td>1 thread was moved</td>"}) {
    CAPTURE(words);
    CHECK(page.find(words) != std::string::npos);
  }
}

TEST_CASE("names are escaped in a report") {
  const std::string page = cli::draw_page(data());
  for (const char* markup : {"<script", "<img", "node<1>"}) {
    CAPTURE(markup);
    CHECK(page.find(markup) == std::string::npos);
  }
  CHECK(cli::escape_html("<a b=\"c\" d='e'>&\x1b\n") ==
        "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;??");
}

TEST_CASE("an empty report is valid, and its verdict unknown") {
  const std::string page = cli::draw_page({});
  CHECK(page.find("<p class=\"verdict unknown\">unknown</p>") != std::string::npos);
  CHECK(page.ends_with("</body>\n</html>\n"));
}
