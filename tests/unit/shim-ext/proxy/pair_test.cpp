// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/pair.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "tests/catch.hpp"
#include "tests/test_clock.hpp"

using namespace ka;
using namespace ka::proxy;
using std::chrono::milliseconds;

namespace {

/// A pair with both of its far ends in the test's hands.
struct Scene {
  Scene() {
    auto client_ends = socket_pair();
    auto shim_ends = socket_pair();
    client = std::move(client_ends[0]);
    shim = std::move(shim_ends[0]);
    pair = std::make_unique<Pair>(
        loop, std::move(client_ends[1]), std::move(shim_ends[1]), block,
        Pair::Events{.to_shim = [this](std::string_view bytes) { seen_to_shim += bytes; },
                     .to_client = [this](std::string_view bytes) { seen_to_client += bytes; },
                     .ended = [this] { ++ended; }});
  }

  static std::array<base::Fd, 2> socket_pair() {
    std::array<int, 2> fds{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0);
    return {base::Fd(fds[0]), base::Fd(fds[1])};
  }

  void turns(int count = 20) {
    for (int i = 0; i < count; ++i) loop.turn(clock.now());
  }
  /// Writes what fits; returns how much.
  static std::size_t write(const base::Fd& fd, std::string_view bytes) {
    const ssize_t put = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return put < 0 ? 0 : static_cast<std::size_t>(put);
  }
  /// All that is there; `end` when the end was among it.
  static std::string read(const base::Fd& fd, bool* end = nullptr) {
    std::string text;
    std::array<char, 65536> part{};
    for (;;) {
      const ssize_t got = ::recv(fd.get(), part.data(), part.size(), 0);
      if (got <= 0) {
        if (end != nullptr) *end = got == 0 || errno != EAGAIN;
        return text;
      }
      text.append(part.data(), static_cast<std::size_t>(got));
    }
  }

  tests::TestClock clock;
  Loop loop{clock};
  std::array<char, 4096> block{};
  base::Fd client;
  base::Fd shim;
  std::string seen_to_shim;
  std::string seen_to_client;
  int ended = 0;
  std::unique_ptr<Pair> pair;
};

std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 131 + i / 251);
  return bytes;
}

/// Sends all of it from one end while the other reads.
std::string through(Scene& scene, const base::Fd& from, const base::Fd& to,
                    const std::string& bytes) {
  std::string got;
  std::size_t sent = 0;
  for (int i = 0; i < 100000 && got.size() < bytes.size(); ++i) {
    sent += Scene::write(from, std::string_view(bytes).substr(sent));
    scene.turns(1);
    got += Scene::read(to);
  }
  return got;
}

}  // namespace

TEST_CASE("bytes pass in both directions and are observed") {
  Scene scene;
  const std::string bytes = pattern(5000000);
  CHECK((through(scene, scene.client, scene.shim, bytes) == bytes));
  CHECK((through(scene, scene.shim, scene.client, bytes) == bytes));
  CHECK((scene.seen_to_shim == bytes));
  CHECK((scene.seen_to_client == bytes));
  CHECK(scene.ended == 0);
}

TEST_CASE("a side that does not read blocks only its own direction, for one block of memory") {
  Scene scene;
  const std::string bytes = pattern(4000000);
  std::size_t sent = 0;
  for (int i = 0; i < 2000; ++i) {
    sent += Scene::write(scene.client, std::string_view(bytes).substr(sent));
    scene.turns(1);
  }
  CHECK(sent < bytes.size());
  CHECK(through(scene, scene.shim, scene.client, "still here") == "still here");
  std::string got;
  for (int i = 0; i < 100000 && got.size() < bytes.size(); ++i) {
    sent += Scene::write(scene.client, std::string_view(bytes).substr(sent));
    scene.turns(1);
    got += Scene::read(scene.shim);
  }
  CHECK((got == bytes));
}

TEST_CASE("bytes of a side that ended are delivered before the other is closed") {
  for (const bool shim_dies : {true, false}) {
    Scene scene;
    base::Fd& dying = shim_dies ? scene.shim : scene.client;
    base::Fd& other = shim_dies ? scene.client : scene.shim;
    const std::string last = pattern(150000);
    REQUIRE(Scene::write(dying, last) == last.size());
    dying.reset();
    std::string got;
    bool end = false;
    for (int i = 0; i < 1000 && !end; ++i) {
      scene.turns(1);
      got += Scene::read(other, &end);
    }
    CHECK((got == last));
    CHECK(end);
    CHECK(scene.ended == 1);
  }
}

TEST_CASE("a side that ends with unread input does not lose the other's bytes") {
  Scene scene;
  const std::string last = pattern(100000);
  Scene::write(scene.client, std::string(100000, 'x'));
  scene.turns();
  REQUIRE(Scene::write(scene.shim, last) == last.size());
  scene.shim.reset();  // with 100000 bytes that it never read
  std::string got;
  bool end = false;
  for (int i = 0; i < 1000 && !end; ++i) {
    scene.turns(1);
    got += Scene::read(scene.client, &end);
  }
  CHECK((got == last));
  CHECK(scene.ended == 1);
}

TEST_CASE("a half-close is passed on, and responses still come back") {
  Scene scene;
  Scene::write(scene.client, "question");
  ::shutdown(scene.client.get(), SHUT_WR);
  scene.turns();
  bool end = false;
  CHECK(Scene::read(scene.shim, &end) == "question");
  CHECK(end);
  CHECK(scene.ended == 0);
  Scene::write(scene.shim, "answer");
  scene.turns();
  CHECK(Scene::read(scene.client) == "answer");
  scene.shim.reset();
  scene.turns();
  CHECK(scene.ended == 1);
}

TEST_CASE("a client that closes while the shim does not read loses nothing that it sent") {
  Scene scene;
  const std::string bytes = pattern(3000000);
  std::size_t sent = 0;
  for (int i = 0; i < 1000; ++i) {
    sent += Scene::write(scene.client, std::string_view(bytes).substr(sent));
    scene.turns(1);
  }
  scene.client.reset();
  scene.turns();
  CHECK(scene.ended == 0);
  std::string got;
  bool end = false;
  for (int i = 0; i < 10000 && !end; ++i) {
    got += Scene::read(scene.shim, &end);
    scene.turns(1);
  }
  CHECK((got == bytes.substr(0, sent)));
  CHECK(scene.ended == 1);
}

TEST_CASE("an idle loop has nothing to do, also beside a closed side with unsent bytes") {
  Scene scene;
  for (int i = 0; i < 1000; ++i) {
    Scene::write(scene.client, std::string(65536, 'x'));
    scene.turns(1);
  }
  scene.client.reset();
  scene.turns();
  CHECK(scene.loop.turn(scene.clock.now()) == 0);
}

TEST_CASE("a wait does not end before its time, and is bounded") {
  CHECK(to_milliseconds(milliseconds(-1)) == 0);
  CHECK(to_milliseconds(std::chrono::nanoseconds(1)) == 1);
  CHECK(to_milliseconds(milliseconds(30)) == 30);
  CHECK(to_milliseconds(Loop::Time::max() - Loop::Time()) == 60'000);
}
