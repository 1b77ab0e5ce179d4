// SPDX-License-Identifier: Apache-2.0
// Limits of block I/O: what the kernel's file says and an operator may write, and nothing else.
#include "policy/facts/io_limits.hpp"

#include "tests/catch.hpp"

using namespace ka::policy;

TEST_CASE("limits have the kernel's form, in whatever order they are named") {
  CHECK(parse_io_limits("8:0 wiops=007 rbps=1000", ',') ==
        IoLimits{{"8:0", "rbps=1000 wbps=max riops=max wiops=7"}});
  CHECK(parse_io_limits("8:16 rbps=max", ',') == IoLimits{{"8:16", std::string(kNoIoLimits)}});
  CHECK(parse_io_limits(" 8:0 wbps=5, 259:3  riops=4294967294 ", ',') ==
        IoLimits{{"8:0", "rbps=max wbps=5 riops=max wiops=max"},
                 {"259:3", "rbps=max wbps=max riops=4294967294 wiops=max"}});
  const std::string file =
      "8:16 rbps=2097152 wbps=max riops=max wiops=120\n"
      "8:0 rbps=max wbps=18446744073709551614 riops=1 wiops=max\n";
  CHECK(parse_io_limits(file, '\n')->size() == 2);
  CHECK(parse_io_limits("", '\n') == IoLimits{});
}

TEST_CASE("what the kernel would refuse, or take for something else, are no limits") {
  for (const char* wrong : {"8:0",
                            "8:0 wbps",
                            "8:0 wbps=",
                            "8:0 wbps=0",
                            "8:0 wbps=-1",
                            "8:0 wbps=1M",
                            "8:0 bps=1",
                            "8:0 wbps=1 wbps=2",
                            "8:0 riops=4294967295",
                            "8:0 rbps=18446744073709551615",
                            "8 wbps=1",
                            "8: wbps=1",
                            ":0 wbps=1",
                            "a:0 wbps=1",
                            "4096:0 wbps=1",
                            "8:1048576 wbps=1",
                            "/dev/sda wbps=1",
                            "default rbps=1",
                            "8:0 wbps=1, 8:0 riops=1",
                            "8:0 wbps=1; 8:1 wbps=1",
                            "8:0 wbps =1"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_io_limits(wrong, ','));
  }
}
