// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/observer.hpp"

#include "base/rpc/message.hpp"
#include "shim-ext/proto/task.pb.h"
#include "tests/catch.hpp"

using namespace ka;
using namespace ka::proxy;

namespace {

struct Seen {
  Call call;
  std::optional<Response> answer;

  bool operator==(const Seen&) const = default;
};

struct Scene {
  void requests(std::string_view bytes) {
    observer.from_containerd(bytes);
    observer.digest();
  }
  void answers(std::string_view bytes) {
    observer.from_shim(bytes);
    observer.digest();
  }

  std::vector<Seen> seen;
  Observer observer{
      {.on_request = [this](const Call& call) { seen.push_back({call, {}}); },
       .on_response = [this](const Call& call,
                             const Response& answer) { seen.push_back({call, answer}); }}};
};

std::string call(std::uint32_t stream, const std::string& method, const std::string& payload,
                 const std::string& service = "containerd.task.v2.Task") {
  return *rpc::encode_request(stream, {service, method, payload, {}, {}});
}

std::string answer(std::uint32_t stream, const std::string& payload) {
  return rpc::encode_response(stream, {rpc::Code::kOk, "", payload});
}

std::string process(const std::string& id, const std::string& exec = "") {
  proto::task::ProcessRequest message;
  message.set_id(id);
  message.set_exec_id(exec);
  return message.SerializeAsString();
}

std::string create(const std::string& id, const std::string& bundle) {
  proto::task::CreateRequest message;
  message.set_id(id);
  message.set_bundle(bundle);
  return message.SerializeAsString();
}

std::string update(const std::string& id, const std::string& json) {
  proto::task::UpdateRequest message;
  message.set_id(id);
  message.mutable_resources()->set_value(json);
  return message.SerializeAsString();
}

std::string pid(unsigned number) {
  proto::task::PidResponse message;
  message.set_pid(number);
  return message.SerializeAsString();
}

const Call kCreated{Verb::kCreate, "c1", "/b/c1", {}};
const Call kStarted{Verb::kStart, "c1", {}, {}};
const Call kUpdated{Verb::kUpdate, "c1", {}, R"({"cpu":{"cpus":"2"}})"};
const Call kDeleted{Verb::kDelete, "c1", {}, {}};

}  // namespace

TEST_CASE("calls about containers are seen with their responses, however bytes are split") {
  const std::string requested = call(1, "Create", create("c1", "/b/c1")) +
                                call(3, "Wait", process("c1")) + call(5, "Start", process("c1")) +
                                call(7, "Update", update("c1", kUpdated.resources)) +
                                call(9, "Delete", process("c1"), "containerd.task.v3.Task");
  const std::string on_response = answer(1, pid(77)) + answer(9, pid(77)) + answer(3, "") +
                                  rpc::encode_response(7, {rpc::Code::kUnknown, "no", ""}) +
                                  answer(5, pid(77));
  const std::vector<Seen> expected{{kCreated, {}},
                                   {kStarted, {}},
                                   {kUpdated, {}},
                                   {kDeleted, {}},
                                   {kCreated, Response{true, 77}},
                                   {kDeleted, Response{true, 77}},
                                   {kUpdated, Response{false, 0}},
                                   {kStarted, Response{true, 77}}};
  for (const std::size_t piece : {std::size_t{1}, std::size_t{13}, std::size_t{100000}}) {
    Scene scene;
    for (std::size_t at = 0; at < requested.size(); at += piece) {
      scene.requests(std::string_view(requested).substr(at, piece));
    }
    for (std::size_t at = 0; at < on_response.size(); at += piece) {
      scene.answers(std::string_view(on_response).substr(at, piece));
    }
    CHECK(scene.seen == expected);
  }
}

TEST_CASE("a process executed in a container is not the container") {
  Scene scene;
  scene.requests(call(1, "Start", process("c1", "shell")) +
                 call(3, "Delete", process("c1", "shell")));
  scene.answers(answer(1, pid(5)) + answer(3, pid(5)));
  CHECK(scene.seen.empty());
}

TEST_CASE("other services, large messages and garbage are skipped") {
  Scene scene;
  scene.requests(call(1, "Create", create("c1", "/b"), "somebody.else.Task"));
  scene.requests(call(3, "Update", update("c1", std::string(4000000, ' '))));
  scene.requests(ttrpc::encode(5, ttrpc::kRequest, 0, "\xff\xff\xff"));
  scene.requests(call(7, "Create", "\xff\xff"));
  scene.requests(call(9, "Start", process("")));
  scene.answers(answer(1, pid(5)) + answer(99, "") + ttrpc::encode(11, ttrpc::kData, 0, "stream"));
  CHECK(scene.seen.empty());
  scene.requests(call(11, "Start", process("c1")));
  scene.answers(ttrpc::encode(11, ttrpc::kResponse, 0, "\xff\xff"));
  CHECK(scene.seen == std::vector<Seen>{{kStarted, {}}, {kStarted, Response{false, 0}}});
}

TEST_CASE("calls without a response do not hide later ones") {
  Scene scene;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    scene.requests(call(2 * i + 1, "Start", process("c1")));
  }
  scene.seen.clear();
  scene.answers(answer(1, pid(1)) + answer(1999, pid(1)));
  CHECK(scene.seen == std::vector<Seen>{{kStarted, Response{true, 1}}});
}

TEST_CASE("notes wait for a quiet moment, with a limit") {
  Scene scene;
  scene.observer.from_shim(answer(1, pid(7)));
  scene.observer.from_containerd(call(1, "Start", process("c1")));
  CHECK(scene.seen.empty());
  scene.observer.digest();
  CHECK(scene.seen == std::vector<Seen>{{kStarted, {}}, {kStarted, Response{true, 7}}});
  scene.seen.clear();
  for (std::uint32_t i = 0; i < 5000; ++i) {
    scene.observer.from_containerd(call(2 * i + 3, "Start", process("c1")));
  }
  CHECK(scene.seen.size() > 4000);
}
