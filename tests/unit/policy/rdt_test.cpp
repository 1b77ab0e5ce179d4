// SPDX-License-Identifier: Apache-2.0
// What a class's shares are on a machine, and what no machine, or not this one, can give.
#include "policy/plan/rdt.hpp"

#include "tests/catch.hpp"

using namespace ka;
using namespace ka::policy;
using namespace ka::policy::plan;

namespace {

/// An 11-way L3 and steps of 10 % of bandwidth, in two domains with a gap.
RdtFacts machine() {
  return {.l3 = CacheFacts{0x7ff, 1, false, {0, 2}},
          .l2 = {},
          .mba = BandwidthFacts{10, 10, true, {0, 2}},
          .groups = 4};
}

/// The schemata, or the refusal's number.
std::string l3(const char* share, const RdtFacts& facts = machine()) {
  const auto text = schemata_of({.l3 = parse_cache_share(share), .l2 = {}, .mba = {}}, facts);
  if (text) return format_schemata(*text);
  CHECK(text.error().key == "l3");
  return std::to_string(static_cast<int>(text.error().refusal));
}

std::string mba(int percent, const RdtFacts& facts = machine()) {
  const auto text = schemata_of({.l3 = {}, .l2 = {}, .mba = percent}, facts);
  return text ? format_schemata(*text) : std::to_string(static_cast<int>(text.error().refusal));
}

std::string refused(RdtRefusal refusal) { return std::to_string(static_cast<int>(refusal)); }

}  // namespace

TEST_CASE("shares of a cache have four forms, and read back the same") {
  for (const char* text : {"50%", "1%", "100%", "50-100%", "20-80%", "0xf", "0xffffffff"}) {
    CAPTURE(text);
    const auto share = parse_cache_share(text);
    REQUIRE(share);
    CHECK(format_share(*share) == text);
  }
  CHECK(format_share(*parse_cache_share("0-50%")) == "50%");
  CHECK(format_share(*parse_cache_share("0-3")) == "0xf");
  CHECK(format_share(*parse_cache_share("4-4")) == "0x10");
  CHECK(format_share(*parse_cache_share("0-31")) == "0xffffffff");
}

TEST_CASE("other texts are no shares") {
  for (const char* text : {"",     "%",    "0%",  "101%", "50-50%",      "60-50%", "-5%",  "5 %",
                           " 5%",  "0x",   "0x0", "0xg",  "0x100000000", "f",      "3",    "3-1",
                           "0-32", "-1-3", "0-",  "-",    "0x-1",        "+5%",    "1.5%", "5%%"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_cache_share(text));
  }
  for (const char* text : {"", "%", "0%", "101%", "50", "-5%", "5-10%", "50% "}) {
    CAPTURE(text);
    CHECK_FALSE(parse_bandwidth(text));
  }
  CHECK(parse_bandwidth("100%") == 100);
}

TEST_CASE("a percentage is a number of ways, at least the least, in all domains") {
  CHECK(l3("100%") == "L3:0=7ff;2=7ff\n");
  CHECK(l3("50%") == "L3:0=3f;2=3f\n");
  CHECK(l3("50-100%") == "L3:0=7c0;2=7c0\n");
  CHECK(l3("1%") == "L3:0=1;2=1\n");
  CHECK(l3("99-100%") == "L3:0=400;2=400\n");
  RdtFacts facts = machine();
  facts.l3->min_bits = 2;
  CHECK(l3("1%", facts) == "L3:0=3;2=3\n");
  CHECK(l3("99-100%", facts) == "L3:0=600;2=600\n");
}

TEST_CASE("ways are taken by the letter, or not at all") {
  CHECK(l3("0-3") == "L3:0=f;2=f\n");
  CHECK(l3("0x700") == "L3:0=700;2=700\n");
  CHECK(l3("0x800") == refused(RdtRefusal::kNoSuchWays));
  CHECK(l3("0x5") == refused(RdtRefusal::kGaps));
  RdtFacts facts = machine();
  facts.l3->sparse = true;
  CHECK(l3("0x5", facts) == "L3:0=5;2=5\n");
  facts.l3->min_bits = 2;
  CHECK(l3("0x5", facts) == refused(RdtRefusal::kTooFewWays));
  CHECK(l3("0x43", facts) == "L3:0=43;2=43\n");
  facts.l3 = CacheFacts{0xffffffff, 1, false, {0}};
  CHECK(l3("0xffffffff", facts) == "L3:0=ffffffff\n");
  CHECK(l3("100%", facts) == "L3:0=ffffffff\n");
  facts.l3.reset();
  CHECK(l3("100%", facts) == refused(RdtRefusal::kAbsent));
}

TEST_CASE("bandwidth is rounded up to the hardware's steps") {
  CHECK(mba(50) == "MB:0=50;2=50\n");
  CHECK(mba(41) == "MB:0=50;2=50\n");
  CHECK(mba(1) == "MB:0=10;2=10\n");
  CHECK(mba(100) == "MB:0=100;2=100\n");
  RdtFacts facts = machine();
  facts.mba->granularity = 0;
  CHECK(mba(41, facts) == "MB:0=41;2=41\n");
  facts.mba->percent = false;
  CHECK(mba(41, facts) == refused(RdtRefusal::kNoPercent));
  facts.mba.reset();
  CHECK(mba(41, facts) == refused(RdtRefusal::kAbsent));
}

TEST_CASE("schemata are read as the kernel pads them") {
  const auto schemata = parse_schemata("    MB:0= 50;1=100\n    L3:0=00f;1=7ff\nL3CODE:0=x\n");
  REQUIRE(schemata);
  CHECK(format_schemata(*schemata) == "L3:0=f;1=7ff\nMB:0=50;1=100\n");
  CHECK(holds(*schemata, *parse_schemata("L3:1=7ff\n")));
  CHECK_FALSE(holds(*schemata, *parse_schemata("L3:1=7fe\n")));
  CHECK_FALSE(holds(*schemata, *parse_schemata("L3:2=7ff\n")));
  CHECK_FALSE(holds(*schemata, *parse_schemata("L2:0=f\n")));
}

TEST_CASE("texts that are no schemata") {
  for (const char* text :
       {"\n", ":", "L3:0", "L3:0=", "L3:=f", "L3:0=f;0=f", "L3:-1=f", "L3:0=f;;1=f", "L3:0=-f",
        "L3:0=g", "L3:0=f f", "L3:0=100000000", "MB:0=f", "L3:0=f\nL3:0=f", "L3:99999999999=f"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_schemata(text));
  }
  CHECK(parse_schemata("")->empty());
}
