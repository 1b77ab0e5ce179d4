// SPDX-License-Identifier: Apache-2.0
#include "vmm/qmp/message.hpp"

#include <chrono>

#include <boost/json/object.hpp>

#include "tests/catch.hpp"
#include "vmm/qmp/intake.hpp"

using namespace ka;
using namespace ka::qmp;

namespace {

const std::string kGreeting =
    R"({"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": "x"},)"
    R"( "capabilities": ["oob"]}})"
    "\r\n";

/// Messages as words, to compare.
std::string words(const std::vector<Message>& messages) {
  std::string text;
  for (const Message& message : messages) {
    if (const auto* greeting = std::get_if<Greeting>(&message))
      text += "hello " + greeting->version;
    if (const auto* event = std::get_if<Event>(&message)) text += event->name + event->data;
    if (const auto* answer = std::get_if<Answer>(&message)) {
      text += answer->id + (answer->result ? "=ok" : "=" + answer->result.error().message);
    }
    text += ';';
  }
  return text;
}

}  // namespace

TEST_CASE("messages are found however the stream is split") {
  const std::string stream =
      kGreeting +
      R"({"return": {}, "id": "1"})"
      "\r\n"
      R"({"event": "RESET", "data": {"guest": true}})" +
      "\n\n" + R"({"id": "2", "error": {"class": "CommandNotFound", "desc": "no"}})" + "\r\n";
  const std::string expected = R"(hello 7.2.22;1=ok;RESET{"guest":true};2=CommandNotFound: no;)";
  for (std::size_t step = 1; step <= stream.size(); ++step) {
    Reader reader;
    std::string got;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      const auto messages = reader.feed(std::string_view(stream).substr(at, step));
      REQUIRE(messages);
      got += words(*messages);
    }
    REQUIRE(got == expected);
  }
}

TEST_CASE("a message may span lines, as -qmp-pretty writes it") {
  Reader reader;
  CHECK(words(*reader.feed("{\n    \"event\": \"STOP\",\n")) == "");
  CHECK(words(*reader.feed("    \"timestamp\": {}\n}\n")) == "STOP{};");
}

TEST_CASE("anything but QMP is an error") {
  for (const std::string text :
       {"xx", "{]", "[1]", "\"a\"", "null ", "{}", R"({"return": {}})",
        R"({"return": {}, "id": 1})", R"({"event": 1})", R"({"error": 1, "id": "1"})",
        R"({"error": {"class": "a", "desc": "b"}})", R"({"QMP": {}})",
        R"({"QMP": {"version": {"qemu": {"major": "7"}}}})", "HTTP/1.1 200 OK\r\n",
        "{\"a\": \"\xff\"}"}) {
    CAPTURE(text);
    Reader reader;
    const auto messages = reader.feed(text);
    REQUIRE_FALSE(messages);
    CHECK(messages.error().code == base::ErrorCode::kInvalid);
  }
}

TEST_CASE("length and depth are bounded") {
  const auto event = [](std::size_t length) {
    const std::string head = R"({"event": "A", "data": {"a": ")";
    return head + std::string(length - head.size() - 3, 'x') + "\"}}";
  };
  Reader fits;
  CHECK(fits.feed(event(kMaxMessage))->size() == 1);
  CHECK(fits.feed(event(kMaxMessage))->size() == 1);  // the bound is a message's, not the stream's
  Reader too_long;
  CHECK_FALSE(too_long.feed(event(kMaxMessage + 1)));
  Reader endless;
  const std::string chunk(64 * 1024, 'x');
  REQUIRE(endless.feed("{\"a\": \""));
  bool refused = false;
  for (int i = 0; i < 17 && !refused; ++i) refused = !endless.feed(chunk);
  CHECK(refused);
  const auto nested = [](std::size_t depth) {
    return R"({"event": "A", "data": {"a": )" + std::string(depth - 2, '[') +
           std::string(depth - 2, ']') + "}}";
  };
  Reader shallow, deep;
  CHECK(shallow.feed(nested(kMaxDepth))->size() == 1);
  CHECK_FALSE(deep.feed(nested(kMaxDepth + 1)));
}

TEST_CASE("a server is read at once up to a burst, then as fast as the rate") {
  const Intake::Clock::time_point start;
  Intake intake(start);
  CHECK(intake.spend(kReadBurst, start) == Intake::Clock::duration::zero());
  CHECK(intake.spend(kReadRate, start) == std::chrono::seconds(1));
  CHECK(intake.spend(0, start + std::chrono::seconds(1)) == Intake::Clock::duration::zero());
  CHECK(intake.spend(1, start + std::chrono::seconds(1)) > Intake::Clock::duration::zero());
  CHECK(intake.spend(kReadRate, start + std::chrono::seconds(3)) ==
        Intake::Clock::duration::zero());
}

TEST_CASE("a command is one line") {
  CHECK(format_command("query-cpus-fast", {}, "7") == R"({"execute":"query-cpus-fast","id":"7"})"
                                                      "\r\n");
  CHECK(format_command("qom-get", {{"path", "/a\nb"}}, "8") ==
        R"({"execute":"qom-get","id":"8","arguments":{"path":"/a\nb"}})"
        "\r\n");
}
