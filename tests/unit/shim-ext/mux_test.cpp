// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/nri/mux.hpp"

#include <map>

#include "shim-ext/nri/events.hpp"
#include "tests/catch.hpp"

using namespace ka::nri;

TEST_CASE("messages are split into frames that Go's side accepts") {
  const std::string bytes(10000, 'x');
  const std::string frames = mux(2, bytes);
  CHECK(frames.size() == bytes.size() + 3 * 8);
  CHECK(frames.substr(0, 8) == std::string("\0\0\0\2\0\0\x10\0", 8));
  CHECK(frames.substr(2 * (8 + 4096), 8) == std::string("\0\0\0\2\0\0\x07\x10", 8));
}

TEST_CASE("lanes are separated however the bytes are split") {
  const std::string stream = mux(1, "plugin") + mux(2, "runtime") + mux(7, "?") + mux(1, "!");
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    Demux demux;
    std::map<std::uint32_t, std::string> lanes;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      REQUIRE(
          demux.feed(std::string_view(stream).substr(at, piece),
                     [&](std::uint32_t lane, std::string_view bytes) { lanes[lane] += bytes; }));
    }
    CHECK(lanes == std::map<std::uint32_t, std::string>{{1, "plugin!"}, {2, "runtime"}, {7, "?"}});
  }
}

TEST_CASE("an impossible length ends the connection") {
  Demux demux;
  const auto nothing = [](std::uint32_t, std::string_view) {};
  CHECK(demux.feed(std::string("\0\0\0\1\0\x40\0\x0a", 8), nothing));
  CHECK_FALSE(Demux().feed(std::string("\0\0\0\1\0\x40\0\x0b", 8), nothing));
}

TEST_CASE("the mask has no event that the runtime does not know") {
  CHECK(event_mask("", "containerd", "1.7.24~ds1") == 0x7ff);
  CHECK(event_mask("", "containerd", "v2.1.5") == 0x7ff);
  CHECK(event_mask("", "containerd", "v2.2.0") == 0x17ff);
  CHECK(event_mask("", "cri-o", "1.33.2") == 0x7ff);
  CHECK(event_mask("", "cri-o", "1.34.0") == 0x17ff);
  CHECK(event_mask("v0.12.0", "other", "") == 0x17ff);
  CHECK(event_mask("v0.9.0", "containerd", "v2.3.0") == 0x7ff);
  CHECK(event_mask("", "other", "9.9") == 0x7ff);
  CHECK(event_mask("", "containerd", "2") == 0x7ff);
  CHECK(event_mask("", "containerd", "") == 0x7ff);
}

TEST_CASE("changes between calls are asked for where the runtime's NRI survives it") {
  for (const char* version : {"v0.12.1", "0.12.1", "v0.12.2-0.20261101", "v0.13", "v1.0.0"}) {
    CHECK(accepts_updates(version));
  }
  for (const char* version : {"", "v0.12.0", "v0.12", "v0.12.x", "v0.11.9", "12", "latest"}) {
    CHECK_FALSE(accepts_updates(version));
  }
}

TEST_CASE("event names parse back") {
  for (int number = 1; number <= 13; ++number) {
    const auto event = static_cast<Event>(number);
    CHECK(event_of(rule_of(event)->method) == event);
  }
  CHECK(rule_of(static_cast<Event>(14)) == nullptr);
  CHECK_FALSE(event_of("ValidateContainerAdjustment"));
}
