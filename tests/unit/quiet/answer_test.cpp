// SPDX-License-Identifier: Apache-2.0
// What kata-affinity-helper answers is read strictly, and made printable.
#include "affinity/quiet/answer.hpp"

#include "affinity/helper/service.hpp"
#include "affinity/helper_client/document.hpp"
#include "tests/catch.hpp"

using namespace ka;
using base::ErrorCode;
using policy::CpuSet;

namespace {

std::string kind(const std::string& name, const std::string& left = "", int total = 0) {
  return R"({"kind":")" + name + R"(","found":3,"moved":2,"left":[)" + left + R"(],"left_total":)" +
         std::to_string(total) + R"(,"problem":""})";
}

std::string document(const std::string& kinds) {
  return R"({"cpus":"4-7","kinds":[)" + kinds + R"(],"problem":""})";
}

std::string wrong(const std::string& text) {
  const auto state = quiet::read_state(text);
  return state ? "" : state.error().message;
}

std::string rests(int number) {
  std::string text;
  for (int i = 0; i < number; ++i) {
    text += std::string(i == 0 ? "" : ",") + R"({"name":"x","cpus":"4","why":"y"})";
  }
  return text;
}

base::Result<policy::QuietState> read_response(const http::Response& response) {
  return helper_client::document_in(response).and_then(quiet::read_state);
}

}  // namespace

TEST_CASE("a state is read whole") {
  const auto state = quiet::read_state(document(
      kind("unit") + ',' +
      kind("interrupt", R"({"name":"24: nvme","cpus":"5-6","why":"the kernel manages it"})", 70)));
  REQUIRE(state);
  CHECK(state->cpus == CpuSet{4, 5, 6, 7});
  REQUIRE(state->kinds.size() == 2);
  CHECK(state->kinds[1] ==
        policy::QuietKind{.kind = "interrupt",
                          .found = 3,
                          .moved = 2,
                          .left = {{"24: nvme", {5, 6}, "the kernel manages it"}},
                          .left_total = 70});
}

TEST_CASE("what the helper says is what the daemon reads") {
  helper::State said{{2, 3}, {}, "a problem", {4}};
  for (const std::string_view name : policy::kQuietKinds) {
    said.kinds.push_back({std::string(name), 5, 2, {{"IRQ 7", {2}, "why"}}, "unreadable"});
  }
  const auto state = quiet::read_state(helper::to_text(said));
  REQUIRE(state);
  CHECK(state->cpus == CpuSet{2, 3});
  CHECK(state->problem == "a problem");
  CHECK(state->interrupts == CpuSet{4});
  REQUIRE(state->kinds.size() == std::size(policy::kQuietKinds));
  CHECK(state->kinds.back() ==
        policy::QuietKind{"unit", 5, 2, {{"IRQ 7", {2}, "why"}}, 1, "unreadable"});
}

TEST_CASE("what is no such state is rejected, with the place") {
  CHECK(wrong("{").starts_with("answer:1:"));
  CHECK(wrong("[]") != "");
  CHECK(wrong("{}").find("cpus") != std::string::npos);
  CHECK(wrong(R"({"cpus":"7-4","kinds":[],"problem":""})").starts_with("cpus: "));
  CHECK(wrong(R"({"cpus":"","kinds":[],"problem":"","more":1})") == "more: unknown key");
  CHECK(wrong(R"({"cpus":"","kinds":[],"problem":1})") == "problem: must be text");
  CHECK(wrong(document(kind("timer"))) == "kinds[0].kind: is not known");
  CHECK(wrong(document(kind("unit") + ',' + kind("unit"))) ==
        "kinds[1]: kind \"unit\" is there twice");
  CHECK(wrong(document(kind("unit", rests(2), 1))) ==
        "kinds[0].left_total: is less than what is listed");
  CHECK(wrong(document(kind("unit", rests(64), 64))) == "");
  CHECK(
      wrong(document(kind("unit", rests(65), 65))).starts_with("kinds[0].left[64]: more than 64"));
}

TEST_CASE("names and reasons become printable and bounded") {
  const auto state = quiet::read_state(document(
      kind("kernel-thread",
           R"({"name":"k\u001b[2J)" + std::string(2000, 'n') + R"(","cpus":"4","why":"\u202ewhy"})",
           1)));
  REQUIRE(state);
  const policy::QuietRest& rest = state->kinds[0].left[0];
  CHECK(rest.name.starts_with("k\\x1b[2Jnnn"));
  CHECK(rest.name.size() <= 512);
  CHECK(rest.why == "\\u{202e}why");
}

TEST_CASE("an answer is a state, a refusal with its reason, or none") {
  CHECK(read_response({.status = 200, .body = document("")})->cpus == CpuSet{4, 5, 6, 7});
  const auto refusal = [](const std::string& body) {
    const auto answer = read_response({.status = 400, .body = body});
    CHECK(answer.error().code == ErrorCode::kConflict);
    return answer.error().message;
  };
  CHECK(refusal(R"({"error":"CPU 9\n is not online"})") == "CPU 9\\x0a is not online");
  CHECK(refusal("{}") == "it does not say why");
  CHECK(refusal("no") == "no");
  CHECK(read_response({.status = 503}).error().code == ErrorCode::kUnavailable);
}
