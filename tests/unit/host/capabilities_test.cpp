// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/capabilities.hpp"

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text.hpp"

using namespace ka;
using tests::contains;

TEST_CASE("what a process cannot see for want of capabilities is named") {
  const tests::TempDir dir;
  const auto unseen = [&dir](const std::string& status) {
    dir.write("status", status);
    return host::unseen_without_capabilities(dir.path());
  };
  const auto with = [&](const std::string& set) {
    return unseen("Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t" + set + "\nCapBnd:\t0\n")
        .value();
  };
  CHECK(with("000001ffffffffff").empty());
  CHECK(with("0000000000880004").empty());  // those of the unit
  CHECK(with("0000000000080002").empty());  // CAP_DAC_OVERRIDE may read, too
  CHECK(with("0000000000800004").starts_with("without CAP_SYS_PTRACE, descriptors"));
  CHECK(with("0000000000880000") ==
        "without CAP_DAC_READ_SEARCH, directories of VMMs of other users");
  const std::string none = with("0000000000000000");
  CHECK(contains(none, "CAP_SYS_PTRACE"));
  CHECK(contains(none, "; without CAP_DAC_READ_SEARCH"));
  CHECK(unseen("Name:\tx\n").error().code == base::ErrorCode::kInvalid);
  CHECK(unseen("Name:\tx\nCapEff:\tx\n").error().code == base::ErrorCode::kInvalid);
  CHECK_FALSE(host::unseen_without_capabilities(dir.path() / "gone"));
}
