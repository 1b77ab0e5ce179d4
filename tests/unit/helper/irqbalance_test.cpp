// SPDX-License-Identifier: Apache-2.0
// irqbalance's socket: which CPUs it may use, and what is told to it.
#include "affinity/helper/irqbalance.hpp"

#include <sys/socket.h>

#include <array>
#include <mutex>

#include "tests/catch.hpp"
#include "tests/scripted_server.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using namespace ka::helper;
using base::ErrorCode;
using policy::CpuSet;

namespace {

/// Answers each connection with the next text.
struct Scene {
  tests::TempDir dir;
  std::mutex mutex;
  std::vector<std::string> requests;
  Irqbalance irqbalance{{dir.path(), dir.path() / "sys", {}, dir.path() / "run"}};

  Scene() {
    dir.write("sys/devices/system/cpu/possible", "0-7\n");
    std::filesystem::create_directory(dir.path() / "run");
  }
  tests::ScriptedServer answer(std::vector<std::string> texts) {
    return {dir.path() / "run/irqbalance7.sock", std::move(texts),
            [this](int peer, const std::string& text) {
              std::array<char, 256> request{};
              const ssize_t size = ::recv(peer, request.data(), request.size(), 0);
              const std::scoped_lock lock(mutex);
              requests.emplace_back(request.data(), static_cast<std::size_t>(size));
              ::send(peer, text.data(), text.size(), MSG_NOSIGNAL);
            }};
  }
};

}  // namespace

TEST_CASE("irqbalance may use what it has not banned") {
  Scene scene;
  const tests::ScriptedServer server =
      scene.answer({"SLEEP 10 IRQ 7 LOAD 0 DIFF 0 CLASS 3 BANNED 0000000c"});
  const auto masks = scene.irqbalance.read();
  REQUIRE(masks);
  REQUIRE(masks->size() == 1);
  CHECK(masks->front().name == "irqbalance7.sock");
  CHECK(masks->front().cpus == CpuSet{0, 1, 4, 5, 6, 7});
}

TEST_CASE("irqbalance is told which CPUs are banned, or to decide itself") {
  Scene scene;
  {
    const tests::ScriptedServer server = scene.answer({"", ""});
    REQUIRE(scene.irqbalance.write({"irqbalance7.sock", {}, {}, {}}, {0, 1, 4, 5, 6, 7}));
    REQUIRE(scene.irqbalance.write({"irqbalance7.sock", {}, {}, {}}, CpuSet::range(0, 7)));
  }
  CHECK(scene.requests == std::vector<std::string>{"settings cpus 2-3", "settings cpus NULL"});
}

TEST_CASE("without irqbalance there is no mask, and a dead one's socket is none") {
  Scene scene;
  CHECK(scene.irqbalance.read()->empty());
  {
    const tests::ScriptedServer dead = scene.answer({});
  }
  CHECK(scene.irqbalance.read()->empty());
  std::filesystem::remove_all(scene.dir.path() / "run");
  CHECK(scene.irqbalance.read()->empty());
}

TEST_CASE("what is no answer of irqbalance is an error") {
  for (const char* text : {"", "BANNED", "BANNED x", "SLEEP 10"}) {
    CAPTURE(text);
    Scene scene;
    const tests::ScriptedServer server = scene.answer({text});
    CHECK(scene.irqbalance.read().error().code == ErrorCode::kInvalid);
  }
}
