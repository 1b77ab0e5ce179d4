#include "affinity/log/log.hpp"

#include "tests/catch.hpp"

using namespace ka::log;

TEST_CASE("a log line has a priority, a text and fields that can be told apart") {
  std::string lines;
  const Log log(Level::kInfo, lines);
  log.warning("thread cannot be placed", {{"sandbox", "s1"}, {"reason", "say \"no\"\nplease"}});
  CHECK(lines == "<4>thread cannot be placed sandbox=s1 reason=\"say \\\"no\\\" please\"\n");
}

TEST_CASE("a level keeps out what is below it") {
  std::string lines;
  Log log(Level::kWarning, lines);
  log.info("quiet");
  CHECK(lines.empty());
  log.set_level(Level::kDebug);
  log.debug("loud");
  CHECK(lines == "<7>loud\n");
  CHECK_FALSE(parse_level("chatty"));
}
