// SPDX-License-Identifier: Apache-2.0
// POST /v1/sandboxes/ID/measure, with a guest that answers at once.
#include "tests/unit/api/scene.hpp"

using namespace ka;
using namespace ka::tests;

namespace {

constexpr const char* kTarget = "/v1/sandboxes/s1/measure";

/// The latencies of every CPU are 3 us and 70 us.
struct Measured : Api {
  Measured() {
    play_pod();
    router.set_measure(
        [this](const std::string& sandbox, const guest::LatencyRequest& request, auto done) {
          CHECK(sandbox == "s1");
          requested = request;
          if (failure) return done(base::fail(*failure, "no agent"));
          guest::Latencies latencies{.realtime = true, .cpus = {}};
          for (const std::uint64_t id : request.hardware_ids) {
            guest::CpuLatency cpu{
                .hardware_id = id, .longest = 70000, .stolen = 10000000, .latencies = {}};
            cpu.latencies.add(3000);
            cpu.latencies.add(70000);
            latencies.cpus.push_back(std::move(cpu));
          }
          done(std::move(latencies));
        });
  }

  http::Response measure(const std::string& body) {
    http::Response response = call("POST", kTarget, body);
    if (response.later) response.later([&](http::Response later) { response = std::move(later); });
    return response;
  }

  std::optional<base::ErrorCode> failure;
  guest::LatencyRequest requested;
};

}  // namespace

TEST_CASE("the dedicated vCPUs are measured, with what the guest says of each", "[api]") {
  Measured api;
  const http::Response response = api.measure("");
  REQUIRE(response.status == 200);
  CHECK(api.requested.hardware_ids == std::vector<std::uint64_t>{1, 2});
  CHECK(api.requested.duration == std::chrono::seconds(10));
  const json::value result = json::parse(response.body);
  CHECK(result.at("id") == "s1");
  CHECK(result.at("realtime") == true);
  json::object vcpu = result.at("vcpus").at(0).as_object();
  CHECK(text(vcpu) ==
        R"({"vcpu":1,"cpus":"4","dedicated":true,"samples":2,"p50_us":3.1E0,"p90_us":7E1,)"
        R"("p99_us":7E1,"p999_us":7E1,"max_us":7E1,"stolen_us":10000,)"
        R"("histogram":[[3.071E0,1],[7.3727E1,1]]})");
}

TEST_CASE("others are measured where they are named, or none is dedicated", "[api]") {
  Measured api;
  CHECK(api.measure(R"({"vcpus":"0,2","seconds":50,"interval_us":100})").status == 200);
  CHECK(api.requested.hardware_ids == std::vector<std::uint64_t>{0, 2});
  api.good("DELETE", "/v1/sandboxes/s1/containers/c1");
  CHECK(api.measure("{}").status == 200);
  CHECK(api.requested.hardware_ids == std::vector<std::uint64_t>{0, 1, 2});
}

TEST_CASE("what cannot be measured is refused, with the reason", "[api]") {
  Measured api;
  CHECK(api.bad("POST", "/v1/sandboxes/s9/measure") == "404 no sandbox \"s9\"");
  CHECK(api.bad("POST", kTarget, R"({"vcpus":"3"})") == "400 vcpus: there is no vCPU 3");
  CHECK(api.bad("POST", kTarget, R"({"vcpus":""})") ==
        "400 vcpus: 1 to 64 can be measured at once, not 0");
  CHECK(api.bad("POST", kTarget, R"({"seconds":51})") == "400 seconds: must be 1 to 50");
  CHECK(api.bad("POST", kTarget, R"({"interval_us":99})") ==
        "400 interval_us: must be 100 to 100000 microseconds");
  using enum base::ErrorCode;
  for (const auto& [failure, status] : {std::pair(kUnavailable, 503), std::pair(kTransient, 503),
                                        std::pair(kPermission, 403), std::pair(kInternal, 500)}) {
    api.failure = failure;
    CHECK(api.measure("").status == status);
  }
}

TEST_CASE("clients that may only read cannot have guests measured", "[api]") {
  Measured api;
  CHECK(api.router.handle_reads({"POST", kTarget, ""}).status == 403);
}
