// SPDX-License-Identifier: Apache-2.0
// The API server's client against one that refuses, breaks off, or sends what it should not.
#include "affinity/cluster/api_server.hpp"

#include <string>
#include <vector>

#include "tests/unit/cluster/cluster_scene.hpp"

using namespace ka;
using namespace ka::cluster;
using base::ErrorCode;
using tests::ClusterScene;
using tests::http_response;
using tests::http_stream;

namespace {

Pod pod() { return {.uid = "u1", .node_uid = "u1", .name_space = "shop", .name = "cart"}; }

Write condition() { return ConditionWrite{pod(), Condition{"True", "Isolated", "alone on CPU 2"}}; }

/// For those that do not matter here.
ApiServer::Pause ignored{0};

const std::string kTooMany =
    http_response("429 Too Many Requests", tests::status_json("slow down"), "Retry-After: 7\r\n");

}  // namespace

TEST_CASE("the node's pods are listed with the account's token", "[cluster]") {
  ClusterScene scene({{http_response("200 OK", tests::list_json("10"))}});
  CHECK(scene.server.list(ignored) == tests::list_json("10"));
  REQUIRE(scene.requests().size() == 1);
  CHECK(scene.targets()[0].starts_with("GET /api/v1/pods?"));
  CHECK(scene.targets()[0].find("spec.nodeName") != std::string::npos);
  CHECK(scene.requests()[0].find("Authorization: Bearer secret\r\n") != std::string::npos);
}

TEST_CASE("why the server refuses is told, and whether it is worth asking again", "[cluster]") {
  const std::tuple<std::string, ErrorCode, std::string> rows[] = {
      {http_response("403 Forbidden", tests::status_json("pods is forbidden")),
       ErrorCode::kPermission, "the API server responds 403: pods is forbidden"},
      {http_response("401 Unauthorized", "no JSON"), ErrorCode::kPermission,
       "the API server responds 401"},
      {http_response("410 Gone", tests::status_json("too old")), ErrorCode::kGone,
       "the API server responds 410: too old"},
      {kTooMany, ErrorCode::kUnavailable, "the API server responds 429: slow down"},
      {http_response("500 Oops", R"({"message":7})"), ErrorCode::kUnavailable,
       "the API server responds 500"},
  };
  for (const auto& [answer, code, message] : rows) {
    CAPTURE(message);
    const ClusterScene scene({{answer}, {answer}});
    for (const auto& error :
         {scene.server.list(ignored).error(),
          scene.server.watch("1", ignored, [](auto) { return true; }).error()}) {
      CHECK(error.code == code);
      CHECK(error.message == message);
    }
  }
}

TEST_CASE("a watch hands over its lines, and says when it was broken off", "[cluster]") {
  std::vector<std::string> lines;
  const auto keep = [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  };
  const ClusterScene scene(
      {{http_stream("one\ntwo\n")}, {.text = http_stream("three\nfo"), .is_cut = true}});
  CHECK(scene.server.watch("7", ignored, keep));
  const auto broken = scene.server.watch("8", ignored, keep);
  REQUIRE_FALSE(broken);
  CHECK(broken.error().code == ErrorCode::kUnavailable);
  CHECK(lines == std::vector<std::string>{"one", "two", "three"});
  CHECK(scene.targets()[0].find("resourceVersion=7") != std::string::npos);
  CHECK(scene.targets()[1].find("resourceVersion=8") != std::string::npos);
}

TEST_CASE("a server with another's certificate gets no token, and the write is repeated later",
          "[cluster]") {
  ClusterScene scene({{http_response("200 OK", "{}")}, {http_response("200 OK", "{}")}});
  tests::Certificate("IP:127.0.0.1").write(scene.dir.path() / "ca.crt");
  CHECK(scene.server.list(ignored).error().code == ErrorCode::kPermission);
  const auto attempt = scene.server.write(condition());
  CHECK(attempt.outcome == Outcome::kFailed);
  CHECK(attempt.error.find("certificate of 127.0.0.1:") == 0);
  CHECK(scene.requests().empty());
}

TEST_CASE("without a token that may be sent nothing is sent", "[cluster]") {
  ClusterScene scene({{http_response("200 OK", "{}")}});
  scene.dir.write("token", "secret\r\nX-Remote-User: admin\n");
  CHECK(scene.server.list(ignored).error().code == ErrorCode::kInvalid);
  std::filesystem::remove(scene.dir.path() / "token");
  CHECK_FALSE(scene.server.list(ignored));
  CHECK(scene.requests().empty());
}

TEST_CASE("a write is repeated where the server may take it later, and no other", "[cluster]") {
  const EventWrite event{pod(), false, "Isolated", "alone"};
  const std::tuple<std::string, Write, Outcome> rows[] = {
      {http_response("200 OK", "{}"), condition(), Outcome::kDone},
      {kTooMany, condition(), Outcome::kFailed},
      {http_response("503 Unavailable", ""), condition(), Outcome::kFailed},
      {http_response("401 Unauthorized", ""), condition(), Outcome::kFailed},
      {http_response("403 Forbidden", ""), condition(), Outcome::kRefused},
      {http_response("404 Not Found", ""), condition(), Outcome::kRefused},
      {http_response("409 Conflict", ""), condition(), Outcome::kRefused},
      {http_response("409 Conflict", ""), event, Outcome::kDone},
      {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", condition(), Outcome::kFailed},
      {http_stream(std::string(1000, 'x')), condition(), Outcome::kDone},
      {"not HTTP at all\r\n", condition(), Outcome::kFailed},
  };
  for (const auto& [answer, write, outcome] : rows) {
    CAPTURE(answer.substr(0, 40));
    const ClusterScene scene({{answer}});
    CHECK(scene.server.write(write).outcome == outcome);
    CHECK(scene.requests().size() == 1);
  }
}

TEST_CASE("a node is read before it is changed; one that cannot be read is not", "[cluster]") {
  const std::string node = R"({"metadata":{"name":"n1","resourceVersion":"3"},"spec":{}})";
  const ClusterScene changed(
      {{http_response("200 OK", node)}, {http_response("409 Conflict", "")}});
  CHECK(changed.server.write(Write(NodeWrite{NodeState::kBroken})).outcome == Outcome::kFailed);
  REQUIRE(changed.targets().size() == 2);
  CHECK(changed.targets()[0] == "GET /api/v1/nodes/n1");
  CHECK(changed.requests()[1].find(R"("resourceVersion":"3")") != std::string::npos);
  for (const char* answer : {"", "[]", "{", "null", R"({"metadata":[]})"}) {
    CAPTURE(answer);
    const ClusterScene scene({{http_response("200 OK", answer)}});
    CHECK(scene.server.write(Write(NodeWrite{NodeState::kBroken})).outcome == Outcome::kFailed);
    CHECK(scene.requests().size() == 1);
  }
}
