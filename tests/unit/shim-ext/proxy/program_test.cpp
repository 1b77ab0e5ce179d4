// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/program.hpp"

#include "tests/catch.hpp"

using namespace ka;

namespace {

/// A program that prints so many bytes, and then ends well.
base::Result<proxy::Ran> print(std::size_t bytes) {
  return proxy::run("/usr/bin/head", {"-c", std::to_string(bytes), "/dev/zero"});
}

}  // namespace

TEST_CASE("what a program prints is caught, up to a limit") {
  const auto ran = print(proxy::kMaxOutput);
  REQUIRE(ran);
  CHECK(ran->status == 0);
  CHECK(ran->output.size() == proxy::kMaxOutput);
  const auto more = print(proxy::kMaxOutput + 1);
  REQUIRE_FALSE(more);
  CHECK(more.error().code == base::ErrorCode::kInvalid);
}

TEST_CASE("a program that prints without end is ended") {
  const auto ran = proxy::run("/bin/cat", {"/dev/zero"});
  REQUIRE_FALSE(ran);
  CHECK(ran.error().message.find("prints more than 1048576 bytes") != std::string::npos);
}
