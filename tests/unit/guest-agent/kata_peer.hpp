// SPDX-License-Identifier: Apache-2.0
// kata-agent's end of a conversation, as a script: what it reads is read by protobuf, by its own
// field numbers.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/ttrpc/envelope.hpp"
#include "base/ttrpc/frame.hpp"
#include "kata_agent.pb.h"
#include "tests/catch.hpp"

namespace ka::tests {

class KataPeer {
 public:
  bool init_daemon = true;
  std::string version = "4.1.0";
  std::map<std::string, ttrpc::Code> refusals;               ///< by container
  std::vector<std::pair<std::string, std::string>> updates;  ///< containers and cpus, as they came
  int details_requests = 0;
  int online = 0;  ///< CPUs that it counts; 0: it refuses to

  /// What it answers to these bytes.
  std::string receive(std::string_view bytes) {
    decoder_.feed(bytes);
    std::string out;
    while (const auto frame = decoder_.next()) out += handle(*frame);
    return out;
  }

 private:
  std::string handle(const ttrpc::Frame& frame) {
    const auto call = ttrpc::read_call(frame.data);
    REQUIRE(call);
    CHECK(call->service == "grpc.AgentService");
    ttrpc::Answer answer;
    std::string payload;
    if (call->method == "GetGuestDetails") {
      ++details_requests;
      kata_agent_subset::GuestDetailsResponse response;
      response.mutable_agent_details()->set_version(version);
      response.mutable_agent_details()->set_init_daemon(init_daemon);
      response.mutable_agent_details()->add_device_handlers("blk");
      payload = response.SerializeAsString();
    } else if (call->method == "GetMetrics") {
      if (online == 0) answer.code = ttrpc::Code::kPermissionDenied;
      kata_agent_subset::Metrics response;
      response.set_metrics(metrics());
      payload = response.SerializeAsString();
    } else {
      CHECK(call->method == "UpdateContainer");
      answer.code = update(std::string(call->payload));
    }
    answer.payload = payload;
    return ttrpc::write_answer(frame.header.stream, answer);
  }

  /// As src/agent/src/metrics.rs of kata-containers 4.1.0 writes them.
  std::string metrics() const {
    std::string text =
        "# TYPE kata_guest_cpu_time gauge\n"
        "kata_guest_cpu_time{cpu=\"total\",item=\"user\"} 7\n"
        "kata_guest_load{item=\"load1\"} 0.5\n";
    for (int cpu = 0; cpu < online; ++cpu) {
      for (const char* item : {"guest", "user"}) {
        text +=
            "kata_guest_cpu_time{cpu=\"" + std::to_string(cpu) + "\",item=\"" + item + "\"} 3\n";
      }
    }
    return text;
  }

  ttrpc::Code update(const std::string& payload) {
    kata_agent_subset::UpdateContainerRequest request;
    REQUIRE(request.ParseFromString(payload));
    // What is not sent kata-agent leaves as it is.
    CHECK_FALSE(request.resources().has_pids());
    CHECK(request.resources().cpu().mems().empty());
    CHECK(request.resources().cpu().shares() == 0);
    updates.emplace_back(request.container_id(), request.resources().cpu().cpus());
    const auto refusal = refusals.find(request.container_id());
    return refusal == refusals.end() ? ttrpc::Code::kOk : refusal->second;
  }

  ttrpc::Decoder decoder_;
};

}  // namespace ka::tests
