// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/answer.hpp"

#include "tests/catch.hpp"

using namespace ka::proxy;

namespace {

constexpr const char* kShim = "unix:///run/containerd/s/ab12";
constexpr const char* kOurs = "unix:///run/containerd/s/ab12.affinity";

/// A BootstrapResult as Go's protobuf writes it: version 3, the address, "ttrpc", a capability and
/// an entry of the metadata.
std::string message(const std::string& address) {
  const std::string rest = std::string("\x1a\x05ttrpc", 7) + std::string("\x22\x03\x0a\x01x", 5) +
                           std::string("\x2a\x06\x0a\x01k\x12\x01v", 8);
  return std::string("\x08\x03\x12", 3) + static_cast<char>(address.size()) + address + rest;
}

std::string renamed(const std::string& answer) {
  const auto own = address_in(answer);
  REQUIRE(own);
  CHECK(*own == kShim);
  return with_address(answer, kOurs);
}

}  // namespace

TEST_CASE("a plain response is only the address, with blanks around it") {
  CHECK(renamed(kShim) == kOurs);
  CHECK(renamed(std::string(kShim) + "\n") == kOurs);
}

TEST_CASE("in JSON only the address changes, and unknown fields stay") {
  const std::string before = R"({"version":3,"address":")";
  const std::string after = R"(","protocol":"ttrpc","more":[1,2,{"a\nb":null}]})";
  CHECK(renamed(before + kShim + after + "\n") == before + kOurs + after);
}

TEST_CASE("JSON may escape the address, and repeat its text elsewhere") {
  CHECK(
      renamed(
          R"({"unix:///run/containerd/s/ab12":0,"address":"unix:\/\/\/run\/containerd/s/ab12"})") ==
      std::string(R"({"unix:///run/containerd/s/ab12":0,"address":")") + kOurs + "\"}");
}

TEST_CASE("in a message only the address changes, and unknown fields stay") {
  CHECK(renamed(message(kShim)) == message(kOurs));
}

TEST_CASE("a response without an address is an error") {
  for (const char* answer :
       {"", "\n", "{}", "{\"address\":1}", "{\"address\":", "failed to start", "\x08\x03"}) {
    INFO(answer);
    CHECK_FALSE(address_in(answer));
    CHECK(with_address(answer, kOurs) == answer);
  }
}

TEST_CASE("only a unix socket's path is accepted") {
  CHECK(socket_path(kShim) == "/run/containerd/s/ab12");
  for (const char* address : {"", "unix://", "unix://@abstract", "vsock://2:1024", "/run/s"}) {
    INFO(address);
    CHECK_FALSE(socket_path(address));
  }
}

TEST_CASE("the proxy listens beside the shim, if the name fits") {
  CHECK(proxy_path("/run/containerd/s/ab12") == "/run/containerd/s/ab12.affinity");
  CHECK(shim_path("/run/containerd/s/ab12.affinity") == "/run/containerd/s/ab12");
  CHECK_FALSE(shim_path("/run/containerd/s/ab12"));
  // A socket's name has 108 bytes with the final zero.
  CHECK(proxy_path("/" + std::string(97, 'x')));
  CHECK_FALSE(proxy_path("/" + std::string(98, 'x')));
}
