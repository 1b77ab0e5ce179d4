// SPDX-License-Identifier: Apache-2.0
#include "base/http/listen.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/unix_socket.hpp"
#include "tests/catch.hpp"
#include "tests/few_descriptors.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using http::UnixListener;

namespace {

/// Leaves a socket behind as a daemon does that was killed.
void leave_dead_socket(const std::filesystem::path& path) { REQUIRE(base::listen_unix(path)); }

}  // namespace

TEST_CASE("a socket is private to its owner, and removed with the listener", "[http]") {
  const tests::TempDir dir;
  const auto path = dir.path() / "new" / "api.sock";
  {
    const auto listener = UnixListener::open(path);
    REQUIRE(listener.has_value());
    struct stat found{};
    REQUIRE(::stat(path.c_str(), &found) == 0);
    CHECK((found.st_mode & 0777) == 0600);
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a socket for others has its mode, in a directory that they can enter", "[http]") {
  const tests::TempDir dir;
  const auto mode_of = [](const std::filesystem::path& path) {
    struct stat found{};
    REQUIRE(::stat(path.c_str(), &found) == 0);
    return found.st_mode & 0777;
  };
  const struct {
    mode_t socket, directory;
  } rows[] = {{0600, 0700}, {0660, 0750}, {0666, 0755}};
  const mode_t before = ::umask(077);
  for (const auto& row : rows) {
    const auto path = dir.path() / std::to_string(row.socket) / "api.sock";
    const auto listener = UnixListener::open(path, row.socket);
    REQUIRE(listener.has_value());
    CHECK(mode_of(path) == row.socket);
    CHECK(mode_of(path.parent_path()) == row.directory);
    CHECK(mode_of(path.native() + ".lock") == 0600);
  }
  ::umask(before);

  const auto there = dir.path() / "there";
  std::filesystem::create_directory(there);
  REQUIRE(::chmod(there.c_str(), 0711) == 0);
  REQUIRE(UnixListener::open(there / "api.sock", 0666).has_value());
  CHECK(mode_of(there) == 0711);
}

TEST_CASE("a second daemon refuses to start", "[http]") {
  const tests::TempDir dir;
  const auto path = dir.path() / "api.sock";
  const auto first = UnixListener::open(path);
  REQUIRE(first.has_value());
  const auto second = UnixListener::open(path);
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().code == base::ErrorCode::kConflict);
  CHECK(std::filesystem::exists(path));
}

TEST_CASE("a socket that others removed is bound again, and still refuses a second daemon",
          "[http]") {
  const tests::TempDir dir;
  const auto path = dir.path() / "run" / "api.sock";
  auto listener = UnixListener::open(path, 0660);
  REQUIRE(listener.has_value());
  CHECK(listener->restore() == false);
  SECTION("with its lock") { std::filesystem::remove(path.native() + ".lock"); }
  SECTION("with its directory") { std::filesystem::remove_all(path.parent_path()); }
  SECTION("alone") {}
  std::filesystem::remove(path);
  REQUIRE(listener->restore() == true);
  CHECK(base::connect_unix(path));
  struct stat found{};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0660);
  CHECK(UnixListener::open(path).error().code == base::ErrorCode::kConflict);
  CHECK(listener->restore() == false);
}

TEST_CASE("what others put in the place of a socket is theirs", "[http]") {
  const tests::TempDir dir;
  const auto path = dir.path() / "api.sock";
  {
    auto listener = UnixListener::open(path);
    REQUIRE(listener.has_value());
    std::filesystem::remove(path);
    const int before = listener->fd();
    SECTION("a file") {
      dir.write("api.sock", "text");
      CHECK(listener->restore().error().code == base::ErrorCode::kInvalid);
    }
    SECTION("another daemon's socket") {
      std::filesystem::remove(path.native() + ".lock");
      const auto other = UnixListener::open(path);
      REQUIRE(other.has_value());
      CHECK(listener->restore().error().code == base::ErrorCode::kConflict);
      CHECK(std::filesystem::exists(path));
      return;
    }
    CHECK(listener->fd() == before);
  }
  CHECK(std::filesystem::exists(path));
}

TEST_CASE("another program's listener without our lock is respected", "[http]") {
  const tests::TempDir dir;
  const auto path = dir.path() / "api.sock";
  const auto first = UnixListener::open(path);
  REQUIRE(first.has_value());
  std::filesystem::remove(path.native() + ".lock");
  const auto second = UnixListener::open(path);
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().code == base::ErrorCode::kConflict);
}

TEST_CASE("a socket that cannot be probed is not called in use, and not replaced", "[http]") {
  if (tests::has_sanitizers()) return;
  const tests::TempDir dir;
  const auto path = dir.path() / "dead.sock";
  leave_dead_socket(path);
  const tests::FewDescriptors few;
  std::vector<base::Fd> taken = tests::open_all();
  taken.pop_back();  // for the lock
  const auto refused = UnixListener::open(path);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() ==
        base::make_error(base::ErrorCode::kTransient, "cannot find out whether " + path.native() +
                                                          " is in use: cannot connect to " +
                                                          path.native() + ": Too many open files"));
  CHECK(std::filesystem::exists(path));
}

TEST_CASE("a stale socket is replaced, any other file is not", "[http]") {
  const tests::TempDir dir;
  leave_dead_socket(dir.path() / "dead.sock");
  CHECK(UnixListener::open(dir.path() / "dead.sock").has_value());

  dir.write("precious", "text");
  const auto refused = UnixListener::open(dir.path() / "precious");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == base::ErrorCode::kInvalid);
  CHECK(std::filesystem::exists(dir.path() / "precious"));
}

TEST_CASE("a path too long for a socket address is rejected", "[http]") {
  const auto refused = UnixListener::open("/tmp/" + std::string(200, 'x'));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == base::ErrorCode::kInvalid);
}

TEST_CASE("TCP addresses are numeric", "[http]") {
  CHECK(http::listen_tcp("127.0.0.1:0").has_value());
  for (const char* wrong : {"", "127.0.0.1", "127.0.0.1:x", "example.com:80", "127.0.0.1:99999"}) {
    CAPTURE(wrong);
    CHECK_FALSE(http::listen_tcp(wrong).has_value());
  }
}
