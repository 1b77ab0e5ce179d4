// SPDX-License-Identifier: Apache-2.0
#include "base/ttrpc/frame.hpp"

#include "tests/catch.hpp"

using namespace ka::ttrpc;

namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

std::vector<Frame> all(Decoder& decoder) {
  std::vector<Frame> frames;
  while (auto frame = decoder.next()) frames.push_back(std::move(*frame));
  return frames;
}

}  // namespace

TEST_CASE("a frame is ten bytes of header, big-endian, and its data") {
  CHECK(encode(0x01020305, kRequest, 0, "ab") == bytes({0, 0, 0, 2, 1, 2, 3, 5, 1, 0}) + "ab");
}

TEST_CASE("frames are decoded however their bytes are split") {
  const std::string stream = encode(1, kRequest, 0, "hello") + encode(3, kResponse, 0, "") +
                             encode(5, kData, kRemoteClosed | kNoData, "x");
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    Decoder decoder;
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      decoder.feed(std::string_view(stream).substr(at, piece));
      for (Frame& frame : all(decoder)) frames.push_back(std::move(frame));
    }
    REQUIRE(frames.size() == 3);
    CHECK(frames[0] == Frame{{5, 1, kRequest, 0}, "hello"});
    CHECK(frames[1] == Frame{{0, 3, kResponse, 0}, ""});
    CHECK(frames[2] == Frame{{1, 5, kData, 5}, "x"});
    CHECK(decoder.idle());
  }
}

TEST_CASE("a stream that stops inside a frame is not idle") {
  Decoder decoder;
  decoder.feed(std::string_view(encode(1, kRequest, 0, "hello")).substr(0, 12));
  CHECK_FALSE(decoder.next());
  CHECK_FALSE(decoder.idle());
}

TEST_CASE("frames of unknown types and flags are passed on") {
  Decoder decoder;
  decoder.feed(encode(7, 200, 0xff, "?"));
  CHECK(all(decoder) == std::vector<Frame>{{{1, 7, 200, 0xff}, "?"}});
}

TEST_CASE("frames of 4 MiB are passed on") {
  Decoder decoder;
  decoder.feed(encode(1, kRequest, 0, std::string(kMaxData, 'x')));
  const auto frame = decoder.next();
  REQUIRE(frame);
  CHECK_FALSE(frame->header.oversized());
  CHECK(frame->data.size() == kMaxData);
}

TEST_CASE(
    "of a frame that is too large the header is reported at once, and the stream goes on behind") {
  Decoder decoder;
  const std::size_t size = kMaxData + 1;
  decoder.feed(bytes({0, 0x40, 0, 1, 0, 0, 0, 9, 1, 0}));
  const auto frame = decoder.next();
  REQUIRE(frame);
  CHECK(frame->header == Header{static_cast<std::uint32_t>(size), 9, kRequest, 0});
  CHECK(frame->header.oversized());
  CHECK(frame->data.empty());
  CHECK_FALSE(decoder.idle());
  for (std::size_t fed = 0; fed < size - 1;) {
    const std::size_t piece = std::min<std::size_t>(60000, size - 1 - fed);
    decoder.feed(std::string(piece, 'x'));
    CHECK_FALSE(decoder.next());
    fed += piece;
  }
  decoder.feed("x" + encode(11, kRequest, 0, "next"));
  CHECK(all(decoder) == std::vector<Frame>{{{4, 11, kRequest, 0}, "next"}});
  CHECK(decoder.idle());
}

TEST_CASE("a decoder of small frames skips large ones") {
  Decoder decoder(8);
  decoder.feed(encode(1, kRequest, 0, "12345678") + encode(3, kRequest, 0, "123456789") +
               encode(5, kRequest, 0, "next"));
  const auto frames = all(decoder);
  REQUIRE(frames.size() == 3);
  CHECK(frames[0].data == "12345678");
  CHECK_FALSE(frames[0].skipped());
  CHECK(frames[1] == Frame{{9, 3, kRequest, 0}, ""});
  CHECK(frames[1].skipped());
  CHECK(frames[2].data == "next");
  CHECK(decoder.idle());
}
