// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/cri/runtime.hpp"

#include <sys/eventfd.h>

#include <chrono>

#include "base/fd.hpp"
#include "base/unix_socket.hpp"
#include "tests/catch.hpp"
#include "tests/http2_frames.hpp"
#include "tests/peers/cri/scripted_runtime.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using base::ErrorCode;
using tests::grpc_refusal;
using tests::grpc_response;
using tests::ScriptedRuntime;

namespace {

struct Scene {
  tests::TempDir dir;
  std::filesystem::path socket = dir.path() / "cri.sock";
  base::Clock clock;
  base::WaitLimit wait_limit = base::WaitLimit::of(std::chrono::seconds(20));
  cri::Runtime runtime{socket, clock, [this] { return wait_limit; }};
};

}  // namespace

TEST_CASE("the runtime's responses are read") {
  Scene scene;
  const ScriptedRuntime server(scene.socket, {grpc_response("\x12\x0a"
                                                            "containerd"),
                                              grpc_response("\x0a\x03pod")});
  CHECK(scene.runtime.version()->runtime == "containerd");
  CHECK(*scene.runtime.run_pod({}, "kata") == "pod");
}

TEST_CASE("a refusal has the socket, the method and the runtime's reason") {
  Scene scene;
  const ScriptedRuntime server(scene.socket, {grpc_refusal("2", "no runtime for kata")});
  const auto pod = scene.runtime.run_pod({}, "kata");
  REQUIRE_FALSE(pod);
  CHECK(pod.error().code == ErrorCode::kConflict);
  CHECK(pod.error().message ==
        scene.socket.native() + ": RuntimeService/RunPodSandbox: no runtime for kata");
}

TEST_CASE("a pod that is gone is removed, one that is not is an error") {
  Scene scene;
  const ScriptedRuntime server(scene.socket,
                               {grpc_refusal("5", "not found"), grpc_refusal("5", "not found"),
                                grpc_response(""), grpc_refusal("2", "it runs")});
  CHECK(scene.runtime.remove_pod("a"));
  CHECK_FALSE(scene.runtime.remove_pod("b"));
}

TEST_CASE("no runtime, and one that speaks something else, are errors") {
  Scene scene;
  CHECK(scene.runtime.version().error().code == ErrorCode::kGone);
  const ScriptedRuntime server(scene.socket, {"HTTP/1.1 400 Bad Request\r\n\r\n"});
  CHECK(scene.runtime.version().error().code == ErrorCode::kInvalid);
}

TEST_CASE("a runtime that does not answer is waited for no longer than its caller does") {
  Scene scene;
  const base::Fd listening = std::move(*base::listen_unix(scene.socket));
  const auto began = std::chrono::steady_clock::now();
  std::string reason;
  SECTION("its limit") {
    scene.wait_limit = base::WaitLimit::of(std::chrono::milliseconds(50));
    reason = "no response in time";
  }
  SECTION("a signal") {
    scene.wait_limit.interrupt = ::eventfd(1, EFD_CLOEXEC);
    reason = "interrupted by a signal";
  }
  const base::Fd interrupt(scene.wait_limit.interrupt);
  const auto version = scene.runtime.version();
  REQUIRE_FALSE(version);
  CHECK(version.error().code == ErrorCode::kConflict);
  CHECK(version.error().message.ends_with(reason));
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(10));
}
