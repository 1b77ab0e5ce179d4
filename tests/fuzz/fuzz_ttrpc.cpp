// SPDX-License-Identifier: Apache-2.0
// Bytes of a ttrpc connection, in pieces of every size: frames come out the same however they came
// in, whole frames survive the way back, and neither end breaks on what another one sends.
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/rpc/client.hpp"
#include "base/rpc/server.hpp"
#include "tests/fuzz/require.hpp"

using namespace ka;

namespace {

std::vector<ttrpc::Frame> decode(std::string_view bytes, std::size_t piece) {
  ttrpc::Decoder decoder;
  std::vector<ttrpc::Frame> frames;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    decoder.feed(bytes.substr(0, piece));
    while (auto frame = decoder.next()) frames.push_back(std::move(*frame));
  }
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto frames = decode(bytes, size + 1);
  tests::require(decode(bytes, 1) == frames);
  for (const auto& [header, body] : frames) {
    if (header.oversized()) continue;
    const auto again = ttrpc::encode(header.stream, header.type, header.flags, body);
    tests::require(decode(again, 7) == std::vector<ttrpc::Frame>{{header, body}});
  }
  boost::asio::io_context io;
  rpc::Server server([](const std::string&) {},
                     [](const rpc::Request& request, const rpc::Reply& reply) {
                       reply(rpc::unimplemented(request));
                     });
  server.receive(bytes);
  rpc::Client client(io, [](const std::string&) {});
  for (int i = 0; i < 3; ++i) client.call({}, [](const rpc::Response&) {});
  client.receive(bytes);
  io.run();
  return 0;
}
