// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/view/documents.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "affinity/cluster/view/object_name.hpp"
#include "base/json/lookup.hpp"
#include "tests/catch.hpp"

using namespace ka;
using namespace ka::cluster;
using namespace std::chrono_literals;

namespace {

const WallTime kNow{std::chrono::seconds(1769860800)};  // 2026-01-31T12:00:00Z
const Pod kPod{.uid = "u1", .node_uid = "u1", .name_space = "shop", .name = "cart"};

std::string name_of(const EventWrite& write, WallTime now) {
  return base::text_at(boost::json::parse(event_request(write, "n1", now).request.body),
                       "/metadata/name");
}

constexpr const char* kNode =
    R"({"metadata":{"name":"n1","resourceVersion":"7","labels":{"a":"b"}},)"
    R"("spec":{"taints":[{"key":"other","effect":"NoExecute"}]}})";

}  // namespace

TEST_CASE("a condition keeps the time of its last transition", "[cluster]") {
  ConditionWrite write{kPod, Condition{"True", "Isolated", "m"}};
  const auto time = [&write] {
    const auto request = condition_request(write, kNow);
    return base::text_at(boost::json::parse(request.request.body),
                         "/status/conditions/0/lastTransitionTime");
  };
  CHECK(time() == "2026-01-31T12:00:00.000Z");
  write.pod.isolated = Condition{"True", "Isolated", "another"};
  write.pod.transition = "2026-01-01T00:00:00Z";
  CHECK(time() == "2026-01-01T00:00:00Z");
  write.pod.isolated->status = "False";
  CHECK(time() == "2026-01-31T12:00:00.000Z");
}

TEST_CASE("an event has one name in ten minutes, whoever makes it", "[cluster]") {
  const EventWrite write{kPod, false, "Isolated", "m"};
  CHECK(name_of(write, kNow) == name_of(write, kNow + 9min));
  CHECK(name_of(write, kNow) != name_of(write, kNow + 10min));
  EventWrite other = write;
  other.reason = "NotIsolated";
  CHECK(name_of(write, kNow) != name_of(other, kNow));
  other.pod.name = std::string(229, 'a') + ".b" + std::string(20, 'c');
  CHECK(name_of(other, kNow).size() <= 253);
  CHECK(is_object_name(name_of(other, kNow)));
}

TEST_CASE("an event's message is cut to what the API server takes", "[cluster]") {
  EventWrite write{kPod, false, "NotIsolated", ""};
  for (int i = 0; i < 600; ++i) write.message += "\u00e9";
  const auto body = boost::json::parse(event_request(write, "n1", kNow).request.body);
  const auto& message = body.at("message").as_string();
  CHECK(message.size() <= 1024);
  CHECK(message.subview(message.size() - 3) == "...");
}

TEST_CASE("a node gets its label, and a taint while it is broken", "[cluster]") {
  const auto kept = node_request(kNode, NodeState::kKept, true);
  REQUIRE(kept);
  REQUIRE(*kept);
  const auto patch = boost::json::parse((*kept)->request.body);
  CHECK(base::text_at(patch, "/metadata/labels/kata-affinity.io~1isolation") == "kept");
  CHECK(base::text_at(patch, "/metadata/resourceVersion") == "7");
  CHECK(base::find_at(patch, "/spec") == nullptr);

  const auto broken = node_request(kNode, NodeState::kBroken, true);
  const auto tainted = boost::json::parse((*broken)->request.body);
  CHECK(base::elements_at(tainted, "/spec/taints").size() == 2);
  CHECK(base::text_at(tainted, "/spec/taints/0/key") == "other");
  CHECK(base::text_at(tainted, "/spec/taints/1/key") == kNodeKey);

  const auto untainted = node_request(kNode, NodeState::kBroken, false);
  CHECK(base::find_at(boost::json::parse((*untainted)->request.body), "/spec") == nullptr);
}

TEST_CASE("what a node has is not written again, and goes when it should", "[cluster]") {
  constexpr const char* kTainted =
      R"({"metadata":{"name":"n1","resourceVersion":"7","labels":{"kata-affinity.io/isolation":"broken"}},)"
      R"("spec":{"taints":[{"key":"kata-affinity.io/isolation","value":"broken","effect":"NoSchedule"},)"
      R"({"key":"other","effect":"NoExecute"}]}})";
  CHECK_FALSE(node_request(kTainted, NodeState::kBroken, true)->has_value());
  for (const auto state : {std::optional(NodeState::kKept), std::optional<NodeState>()}) {
    const auto request = node_request(kTainted, state, true);
    REQUIRE(request->has_value());
    const auto patch = boost::json::parse((*request)->request.body);
    REQUIRE(base::elements_at(patch, "/spec/taints").size() == 1);
    CHECK(base::text_at(patch, "/spec/taints/0/key") == "other");
    CHECK(patch.at_pointer("/metadata/labels/kata-affinity.io~1isolation").is_null() == !state);
  }
  CHECK_FALSE(node_request(R"({"kind":"Status"})", NodeState::kKept, true));
}
