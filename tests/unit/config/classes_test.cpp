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

TEST_CASE("an error in a class has its place") {
  CHECK(wrong("[affinity.classes.gold]\nnice = 20\n") ==
        "2:8: affinity.classes.gold.nice: must be a whole number from -20 to 19");
  CHECK(wrong("[affinity.classes.gold]\nio_weight = 0\n").ends_with("from 1 to 10000"));
  CHECK(wrong("[affinity.classes.gold]\nnice = \"5\"\n").starts_with("2:8: "));
  CHECK(wrong("[affinity.classes.gold]\nnicee = 5\n") ==
        "2:1: affinity.classes.gold.nicee: unknown key; a class has nice, io_weight");
  CHECK(
      wrong("[affinity.classes.gold]\n").ends_with("a class has at least one of nice, io_weight"));
  CHECK(wrong("[affinity.classes.\"a b\"]\nnice = 5\n").find("is not a class name") !=
        std::string::npos);
  CHECK(wrong("[affinity]\nclasses = 3\n").ends_with("must be tables [affinity.classes.NAME]"));
  CHECK(
      wrong("[affinity.classes]\nnice = 3\n").ends_with("must be tables [affinity.classes.NAME]"));
  CHECK(wrong("[affinity.classes]\n").empty());
  CHECK(wrong("[affinity.classes.gold.more]\nnice = 3\n").find("unknown key") != std::string::npos);
}
