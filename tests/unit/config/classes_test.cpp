// SPDX-License-Identifier: Apache-2.0
// [affinity.classes.NAME] and the kinds that pods may choose.
#include "affinity/config/classes.hpp"

#include "affinity/config/config.hpp"
#include "affinity/config/keys.hpp"
#include "tests/catch.hpp"
#include "tests/unit/config/text.hpp"

using namespace ka;
using policy::ClassKind;
using tests::load;
using tests::wrong;

TEST_CASE("classes are read with what they define") {
  const auto config = load(
      "[affinity]\nallow_annotations = [\"blockioclass\", \"environment\"]\n"
      "[affinity.classes.gold]\nnice = -20\nio_weight = 10000\n"
      "[affinity.classes.idle]\nnice = 19\n"
      "[affinity.handler.kata]\ncgroup = \"manage\"\n");
  REQUIRE(config);
  REQUIRE(config->classes.by_name.size() == 2);
  CHECK(config->classes.by_name.at("gold").nice == -20);
  CHECK(config->classes.by_name.at("gold").io_weight == 10000);
  CHECK(config->classes.by_name.at("idle").nice == 19);
  CHECK_FALSE(config->classes.by_name.at("idle").io_weight);
  CHECK(config->classes.by_annotation == std::set{ClassKind::kBlockIo});
  CHECK(config->by_handler.size() == 1);
  CHECK(load("[affinity]\n")->classes == policy::plan::ResourceClasses{});
}

TEST_CASE("shares of caches and bandwidth are read, and mark a class that has some") {
  const auto config = load(
      "[affinity]\nallow_annotations = [\"rdtclass\"]\n"
      "[affinity.classes.gold]\nl3 = \"50-100%\"\nl2 = \"0xf\"\nmba = \"30%\"\n"
      "[affinity.classes.idle]\nnice = 19\n");
  REQUIRE(config);
  const policy::RdtShares& gold = config->classes.by_name.at("gold").rdt;
  CHECK(gold.l3 == policy::CacheShare{50, 100, 0});
  CHECK(gold.l2 == policy::CacheShare{0, 0, 0xf});
  CHECK(gold.mba == 30);
  CHECK(config->classes.by_name.at("idle").rdt.empty());
  CHECK(config->classes.by_annotation == std::set{ClassKind::kRdt});
  CHECK(wrong("[affinity.classes.gold]\nl3 = \"half\"\n")
            .starts_with("2:6: affinity.classes.gold.l3: must be \"50%\", \"50-100%\", ways"));
  CHECK(wrong("[affinity.classes.gold]\nl3 = 50\n").starts_with("2:6: "));
  CHECK(wrong("[affinity.classes.gold]\nmba = \"0%\"\n").ends_with("must be \"1%\" to \"100%\""));
  CHECK(wrong("[affinity.classes.gold]\nmba = 50\n").starts_with("2:7: "));
}

TEST_CASE("limits of block I/O are read, and mark a class that has some") {
  const auto config =
      load("[affinity.classes.slow]\nio_max = \"8:0 wbps=5000 riops=7, 8:16 rbps=max\"\n");
  REQUIRE(config);
  CHECK(config->classes.by_name.at("slow").io_max ==
        policy::IoLimits{{"8:0", "rbps=max wbps=5000 riops=7 wiops=max"},
                         {"8:16", "rbps=max wbps=max riops=max wiops=max"}});
  for (const char* wrong_limits :
       {"\"\"", "\"8:0\"", "\"/dev/sda wbps=1\"", "5", "[\"8:0 wbps=1\"]"}) {
    CAPTURE(wrong_limits);
    CHECK(wrong(std::string("[affinity.classes.slow]\nio_max = ") + wrong_limits + '\n')
              .starts_with("2:10: affinity.classes.slow.io_max: must be disks with limits"));
  }
}

TEST_CASE("an error in a class has its place") {
  CHECK(wrong("[affinity.classes.gold]\nnice = 20\n") ==
        "2:8: affinity.classes.gold.nice: must be a whole number from -20 to 19");
  CHECK(wrong("[affinity.classes.gold]\nio_weight = 0\n").ends_with("from 1 to 10000"));
  CHECK(wrong("[affinity.classes.gold]\nnice = \"5\"\n").starts_with("2:8: "));
  CHECK(wrong("[affinity.classes.gold]\nnicee = 5\n") ==
        "2:1: affinity.classes.gold.nicee: unknown key; a class has nice, io_weight, io_max, l3, "
        "l2, mba");
  CHECK(wrong("[affinity.classes.gold]\n")
            .ends_with("a class has at least one of nice, io_weight, io_max, l3, l2, mba"));
  CHECK(wrong("[affinity.classes.\"a b\"]\nnice = 5\n").find("is not a class name") !=
        std::string::npos);
  CHECK(wrong("[affinity]\nclasses = 3\n").ends_with("must be tables [affinity.classes.NAME]"));
  CHECK(
      wrong("[affinity.classes]\nnice = 3\n").ends_with("must be tables [affinity.classes.NAME]"));
  CHECK(wrong("[affinity.classes]\n").empty());
  CHECK(wrong("[affinity.classes.gold.more]\nnice = 3\n").find("unknown key") != std::string::npos);
}
