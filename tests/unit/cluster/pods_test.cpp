// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/view/pods.hpp"

#include "affinity/cluster/view/object_name.hpp"
#include "base/json/lookup.hpp"
#include "tests/catch.hpp"

using namespace ka;
using namespace ka::cluster;
using base::ErrorCode;

namespace {

std::string pod_text(const std::string& uid, const std::string& version,
                     const std::string& more = "") {
  return R"({"metadata":{"uid":")" + uid + R"(","namespace":"shop","name":"cart-)" + uid +
         R"(","resourceVersion":")" + version + "\"" + more + "}}";
}

std::string event_text(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}";
}

Pods listed() {
  Pods pods;
  REQUIRE(pods.replace(R"({"metadata":{"resourceVersion":"10"},"items":[)" + pod_text("a", "3") +
                       "," + pod_text("b", "4") + "]}"));
  return pods;
}

}  // namespace

TEST_CASE("a list and a watch give the node's pods", "[cluster]") {
  Pods pods = listed();
  CHECK(pods.all().size() == 2);
  CHECK(pods.version() == "10");
  CHECK(pods.apply(event_text("ADDED", pod_text("c", "11"))));
  CHECK(pods.apply(event_text("DELETED", pod_text("a", "12"))));
  CHECK(pods.apply(event_text("BOOKMARK", R"({"metadata":{"resourceVersion":"99"}})")));
  CHECK(pods.all().contains("c"));
  CHECK_FALSE(pods.all().contains("a"));
  CHECK(pods.version() == "99");
}

TEST_CASE("a static pod is known to the node by the uid of its manifest", "[cluster]") {
  Pods pods;
  REQUIRE(pods.replace(R"({"metadata":{"resourceVersion":"1"},"items":[)" +
                       pod_text("a", "3", R"(,"annotations":{"kubernetes.io/config.mirror":"m"})") +
                       "]}"));
  CHECK(pods.all().at("a").node_uid == "m");
}

TEST_CASE("of a pod's conditions ours is read", "[cluster]") {
  Pods pods = listed();
  const std::string status =
      R"(,"status":{"conditions":[{"type":"Ready","status":"True"},)"
      R"({"type":"kata-affinity.io/Isolated","status":"False","reason":"PinnedByHand",)"
      R"("message":"m","lastTransitionTime":"2026-01-31T12:00:00Z"}]})";
  std::string text = pod_text("a", "11");
  text.insert(text.size() - 1, status);
  REQUIRE(pods.apply(event_text("MODIFIED", text)));
  CHECK(pods.all().at("a").isolated == Condition{"False", "PinnedByHand", "m"});
  CHECK(pods.all().at("a").transition == "2026-01-31T12:00:00Z");
}

TEST_CASE("an outdated watch is told from one that failed", "[cluster]") {
  Pods pods = listed();
  const auto gone = pods.apply(
      R"({"type":"ERROR","object":{"code":410,"message":"too old resource version: 10"}})");
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == ErrorCode::kGone);
  const auto failed = pods.apply(R"({"type":"ERROR","object":{"code":500,"message":"etcd"}})");
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::kUnavailable);
}

TEST_CASE("what is no watch, or no pod, changes nothing", "[cluster]") {
  Pods pods = listed();
  const auto before = pods.all();
  for (const char* line :
       {"", "{", "[]", "{}", R"({"type":"ADDED"})", R"({"type":7,"object":{}})"}) {
    INFO(line);
    const auto applied = pods.apply(line);
    REQUIRE_FALSE(applied);
    CHECK(applied.error().code == ErrorCode::kInvalid);
  }
  // Names become parts of paths.
  for (const char* metadata :
       {R"({"uid":"x","namespace":"shop","name":"../nodes/n1"})",
        R"({"uid":"x","namespace":"a/b","name":"c"})",
        R"({"uid":"x y","namespace":"a","name":"c"})",
        R"({"uid":["x"],"namespace":"a","name":"c"})", R"({"namespace":"a","name":"c"})"}) {
    INFO(metadata);
    CHECK(pods.apply(event_text("ADDED", std::string(R"({"metadata":)") + metadata + "}")));
  }
  CHECK(pods.all() == before);
}

TEST_CASE("a list that is none keeps the pods", "[cluster]") {
  Pods pods = listed();
  for (const char* list : {"", "null", R"({"kind":"Status","code":403})", R"({"items":[{}]})"}) {
    INFO(list);
    CHECK_FALSE(pods.replace(list));
  }
  CHECK(pods.all().size() == 2);
  // Nested deeper than any pod.
  CHECK_FALSE(pods.replace(R"({"metadata":{"resourceVersion":"1"},"items":)" +
                           std::string(1000, '[') + std::string(1000, ']') + "}"));
}

TEST_CASE("names of objects", "[cluster]") {
  CHECK(is_object_name("worker-3.example"));
  CHECK_FALSE(is_object_name(""));
  CHECK_FALSE(is_object_name(".."));
  CHECK_FALSE(is_object_name("a/b"));
  CHECK_FALSE(is_object_name("a%2Fb"));
  CHECK_FALSE(is_object_name(std::string(254, 'a')));
}
