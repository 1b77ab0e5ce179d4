// SPDX-License-Identifier: Apache-2.0
// NRI's bytes, as protoc and Go's own implementation make them.
#include <boost/json/object.hpp>
#include <map>
#include <string>

#include "base/rpc/message.hpp"
#include "shim-ext/nri/mux.hpp"
#include "shim-ext/proto/nri.pb.h"
#include "tests/catch.hpp"
#include "tests/conformance/vectors.hpp"

using namespace ka;
using namespace std::chrono_literals;

namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

std::map<std::string, std::string> vectors() {
  std::map<std::string, std::string> bytes;
  const auto file = test::conformance_vectors("nri_wire_vectors.json");
  if (!file) return bytes;
  for (const auto& [name, hex] : *file) bytes[name] = from_hex(hex.as_string());
  return bytes;
}

/// The one ttrpc frame that a vector holds, and the lane it is for.
std::pair<std::uint32_t, ttrpc::Frame> unpack(const std::string& bytes) {
  std::uint32_t lane = 0;
  ttrpc::Decoder decoder;
  REQUIRE(nri::Demux().feed(bytes, [&](std::uint32_t id, std::string_view payload) {
    lane = id;
    decoder.feed(payload);
  }));
  auto frame = decoder.next();
  REQUIRE(frame);
  CHECK(decoder.idle());
  return {lane, std::move(*frame)};
}

}  // namespace

TEST_CASE("NRI: encoded messages equal Go's byte for byte") {
  auto bytes = vectors();
  if (bytes.empty()) return;
  test::say_count("nri_wire_vectors.json", bytes.size(), 5);
  proto::nri::RegisterPluginRequest plugin;
  plugin.set_plugin_name("kata-affinity");
  plugin.set_plugin_idx("10");
  CHECK(nri::mux(nri::kRuntimeLane, *rpc::encode_request(1, {"nri.pkg.api.v1alpha1.Runtime",
                                                             "RegisterPlugin",
                                                             plugin.SerializeAsString(),
                                                             5s,
                                                             {}})) ==
        bytes["RegisterPlugin_request"]);
  proto::nri::ConfigureResponse events;
  events.set_events(0x7ff);
  CHECK(nri::mux(nri::kPluginLane,
                 rpc::encode_response(1, {rpc::Code::kOk, "", events.SerializeAsString()})) ==
        bytes["Configure_response_events_0x7FF"]);
  CHECK(nri::mux(nri::kPluginLane,
                 rpc::encode_response(
                     3, rpc::unimplemented(
                            {"nri.pkg.api.v1alpha1.Plugin", "RunPodSandbox", "", {}, {}}))) ==
        bytes["StateChange_unimplemented_response"]);
}

TEST_CASE("NRI: Go's messages decode to the same values") {
  auto bytes = vectors();
  if (bytes.empty()) return;
  const auto [lane, frame] = unpack(bytes["RegisterPlugin_response_ok"]);
  CHECK(lane == nri::kRuntimeLane);
  CHECK(frame.header == ttrpc::Header{0, 1, ttrpc::kResponse, 0});
  CHECK(rpc::decode_response(frame.data) == rpc::Response{});
  const auto update = unpack(bytes["UpdateContainers_request_cpus_2-3"]);
  const auto request = rpc::decode_request(update.second.data);
  REQUIRE(request);
  CHECK(request->method == "UpdateContainers");
  CHECK(request->payload.find("2-3") != std::string::npos);
}
