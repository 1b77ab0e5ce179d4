// SPDX-License-Identifier: Apache-2.0
#include "policy/facts/id_set.hpp"

#include <string>

#include "tests/catch.hpp"

using namespace ka::policy;

namespace {

std::string round_trip(const std::string& text) {
  const auto set = parse_list<CpuTag>(text);
  return set ? format_list(*set) : "error at " + std::to_string(set.error().position);
}

std::string mask_trip(const std::string& text) {
  const auto set = parse_mask<CpuTag>(text);
  return set ? format_mask(*set) : "error at " + std::to_string(set.error().position);
}

}  // namespace

TEST_CASE("CPU lists are parsed as the kernel writes them") {
  CHECK(round_trip("0-3,8") == "0-3,8");
  CHECK(round_trip("0-3,8\n") == "0-3,8");
  CHECK(round_trip("") == "");
  CHECK(round_trip("\n") == "");
  CHECK(round_trip("5") == "5");
  CHECK(round_trip("8191") == "8191");
  CHECK(round_trip("0-8191") == "0-8191");
  CHECK(round_trip("63-64") == "63-64");
  CHECK(round_trip("4-5,0-1,1-2") == "0-2,4-5");
}

TEST_CASE("a malformed list is an error with its position") {
  CHECK(round_trip("0-") == "error at 2");
  CHECK(round_trip("5-2") == "error at 0");
  CHECK(round_trip("1,,2") == "error at 2");
  CHECK(round_trip("a") == "error at 0");
  CHECK(round_trip("1,a") == "error at 2");
  CHECK(round_trip("8192") == "error at 0");
  CHECK(round_trip("0-4294967295") == "error at 2");
  CHECK(round_trip("99999999999999999999") == "error at 0");
  CHECK(round_trip("1 ") == "error at 1");
  CHECK(round_trip(" 1") == "error at 0");
  CHECK(round_trip("1\n\n") == "error at 1");
  CHECK(round_trip("1,") == "error at 2");
  CHECK(round_trip("-1") == "error at 0");
  CHECK(round_trip("1-2-3") == "error at 3");
  CHECK(round_trip("0x1") == "error at 1");
}

TEST_CASE("masks are parsed as /proc writes them") {
  CHECK(mask_trip("f") == "f");
  CHECK(mask_trip("ff,00000001\n") == "ff,00000001");
  CHECK(mask_trip("0") == "0");
  CHECK(mask_trip("00000000,0000000f") == "f");
  CHECK(mask_trip("00000001,00000000,00000000") == "1,00000000,00000000");
  CHECK(format_list(*parse_mask<CpuTag>("3,80000000")) == "31-33");
  std::string zeros;
  for (int word = 1; word < kMaxIds / 32; ++word) zeros += ",00000000";
  CHECK(format_list(*parse_mask<CpuTag>("80000000" + zeros)) == "8191");
  CHECK(parse_mask<CpuTag>("2,00000000" + zeros).error().reason == "bit is above 8191");
  CHECK(mask_trip("ABCDEF") == "abcdef");
}

TEST_CASE("a malformed mask is an error with its position") {
  CHECK(mask_trip("") == "error at 0");
  CHECK(mask_trip("g") == "error at 0");
  CHECK(mask_trip("1,2") == "error at 2");
  CHECK(mask_trip("1,,00000001") == "error at 2");
  CHECK(mask_trip("100000000,00000000") == "error at 0");
  CHECK(mask_trip(",00000001") == "error at 0");
  CHECK(mask_trip("1 ") == "error at 1");
}

TEST_CASE("a bit above the largest id is rejected, zeros above it are not") {
  CHECK(mask_trip(std::string(1, '1') + [] {
          std::string tail;
          for (int i = 0; i < 256; ++i) tail += ",00000000";
          return tail;
        }()) == "error at 0");
}

TEST_CASE("a set contains its members") {
  const CpuSet set{1, 64, 130};
  CHECK(set.size() == 3);
  CHECK(set.first() == 1);
  CHECK(set.last() == 130);
  CHECK(set.next(2) == 64);
  CHECK(set.next(131) == -1);
  CHECK(set.ids() == std::vector<int>{1, 64, 130});
  CHECK_FALSE(set.contains(-1));
  CHECK_FALSE(set.contains(8000));
  CHECK(CpuSet{}.first() == -1);
  CHECK(CpuSet{}.last() == -1);
}

TEST_CASE("set algebra keeps one representation of equal sets") {
  CpuSet a = CpuSet::range(0, 200);
  a -= CpuSet::range(3, 200);
  CHECK(a == CpuSet::range(0, 2));
  CHECK((CpuSet{1, 2} & CpuSet{2, 3}) == CpuSet{2});
  CHECK((CpuSet{1} | CpuSet{100}) == CpuSet{1, 100});
  CHECK(CpuSet{1}.subset_of(CpuSet{1, 100}));
  CHECK_FALSE(CpuSet{1, 100}.subset_of(CpuSet{1}));
  CHECK(CpuSet{70}.intersects(CpuSet::range(64, 80)));
  a.add(190);
  a.remove(190);
  CHECK(a == CpuSet::range(0, 2));
  CHECK(CpuSet::range(3, 2).empty());
}

TEST_CASE("ids on both sides of 256 are members alike") {
  CpuSet set{3, 255, 256, 700};
  CHECK(set.size() == 4);
  CHECK(set.ids() == std::vector<int>{3, 255, 256, 700});
  CHECK(set.last() == 700);
  CHECK(set.next(257) == 700);
  CHECK(CpuSet{256}.first() == 256);
  CHECK_FALSE(CpuSet{256}.empty());
  CHECK_FALSE(set.fits_word());
  CHECK(CpuSet{3, 63}.fits_word());
  CHECK(CpuSet::from_words(set.words()) == set);
  set.remove(700);
  set -= CpuSet{256};
  CHECK(set == CpuSet{3, 255});
  CHECK(set.words().size() == 4);
}

TEST_CASE("set algebra works across the boundary of 256") {
  const CpuSet low = CpuSet::range(200, 255), high = CpuSet::range(256, 320);
  const CpuSet both = low | high;
  CHECK(both == CpuSet::range(200, 320));
  CHECK((both & low) == low);
  CHECK((both - low) == high);
  CHECK((both - high) == low);
  CHECK(low.subset_of(both));
  CHECK_FALSE(both.subset_of(low));
  CHECK(both.intersects(high));
  CHECK_FALSE(low.intersects(high));
  CHECK((CpuSet{1} < CpuSet{1, 300}));
}
