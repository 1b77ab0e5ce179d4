// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/view/classes.hpp"

#include "tests/catch.hpp"

using namespace ka;
using namespace ka::cluster;

namespace {

Pods pods_with(const std::string& annotations) {
  Pods pods;
  REQUIRE(pods.replace(R"({"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"uid":"a",)"
                       R"("namespace":"shop","name":"cart","annotations":)" +
                       annotations + "}}]}"));
  return pods;
}

ClassRequest of(const std::string& container, std::optional<std::string> requested) {
  return {"s1", "a", container, std::move(requested)};
}

using Requests = std::vector<ClassRequest>;

}  // namespace

TEST_CASE("what a pod asks for by annotation differs from what the daemon knows", "[cluster]") {
  const Requests known{of("app", std::nullopt), of("side", "share")};
  CHECK(changed_requests(known, pods_with("{}")) == Requests{of("side", std::nullopt)});
  CHECK(changed_requests(known, pods_with(R"({"qos.gocrane.io/cpu-manager":"share"})")) ==
        Requests{of("app", "share")});
  CHECK(changed_requests(known, pods_with(R"({"qos.gocrane.io/cpu-manager":"none",
                                              "kata-affinity.io/cpu-manager.app":"exclusive"})")) ==
        Requests{of("app", "exclusive"), of("side", "none")});
}

TEST_CASE("a pod that the cluster does not have keeps what it asked for", "[cluster]") {
  CHECK(changed_requests({{"s2", "b", "app", "share"}}, pods_with("{}")).empty());
  CHECK(changed_requests({{"s2", "", "app", "share"}}, pods_with("{}")).empty());
  CHECK(changed_requests({of("app", "share")}, Pods()).empty());
}

TEST_CASE("annotations are read as far as they are about classes, and printable", "[cluster]") {
  const Pods pods = pods_with(R"({"kata-affinity.io/cpu-manager":"a\u001bb","x":"y",
      "kata-affinity.io/cpu-managers":"z","qos.gocrane.io/cpu-manager":7})");
  const auto& read = pods.all().at("a").class_annotations;
  CHECK(read.size() == 1);
  CHECK(read.at("kata-affinity.io/cpu-manager") == "a\\x1bb");
  CHECK(pods_with("7").all().at("a").class_annotations.empty());
}

TEST_CASE("the daemon's pools are read as requests", "[cluster]") {
  const auto read = read_class_requests(R"({"containers":[
      {"id":"c1","pod":"s1","pod_uid":"a","name":"app"},
      {"id":"c2","pod":"s1","pod_uid":"a","name":"side","requested":"share"},
      {"id":"c3","pod":"../s2","pod_uid":"a","name":"app"}, 7]})");
  REQUIRE(read);
  CHECK(*read == Requests{of("app", std::nullopt), of("side", "share")});
  for (const char* wrong : {"", "[]", "{}", "{\"containers\""}) {
    CHECK(read_class_requests(wrong).error().code == base::ErrorCode::kInvalid);
  }
}
