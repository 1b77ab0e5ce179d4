// SPDX-License-Identifier: Apache-2.0
#include "base/unix_socket.hpp"

#include "base/runtime_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using base::ErrorCode;

TEST_CASE("a path must fit into a socket address") {
  CHECK(base::unix_address(std::string(107, 'a')));
  CHECK(base::unix_address(std::string(108, 'a')).error().code == ErrorCode::kInvalid);
  CHECK(base::unix_address("").error().code == ErrorCode::kInvalid);
  CHECK(base::connect_unix(std::string(200, 'a')).error().code == ErrorCode::kInvalid);
  CHECK(base::listen_unix(std::string(200, 'a')).error().code == ErrorCode::kInvalid);
}

TEST_CASE("only sockets in a runtime's own directories are accepted") {
  const tests::TempDir run;
  for (const char* file : {"vc/vm/s/a.sock", "kata/s/b.sock", "other/c.sock", "vcx/d.sock",
                           "containerd/t/s/rootfs/e.sock"}) {
    run.write(file, "");
  }
  std::filesystem::create_symlink(run.path() / "other", run.path() / "vc/out");
  std::filesystem::create_symlink(run.path() / "kata/s", run.path() / "in");
  const auto root = std::filesystem::canonical(run.path());
  const auto found = [&](const std::string& file) {
    return base::runtime_socket(run.path(), run.path() / file).value_or("").string();
  };
  CHECK(found("vc/vm/s/a.sock") == (root / "vc/vm/s/a.sock").string());
  CHECK(found("in/b.sock") == (root / "kata/s/b.sock").string());
  for (const char* file : {"other/c.sock", "vcx/d.sock", "vc/../other/c.sock", "vc/out/c.sock",
                           "containerd/t/s/rootfs/e.sock", "vc/../../x", ""}) {
    CAPTURE(file);
    CHECK(found(file).empty());
  }
  CHECK_FALSE(base::runtime_socket(run.path(), "vc/vm/s/a.sock"));
}

TEST_CASE("a listening socket is found, exclusive and private") {
  const tests::TempDir dir;
  const auto path = dir.path() / "a.sock";
  CHECK(base::connect_unix(path).error().code == ErrorCode::kGone);
  {
    const auto listener = base::listen_unix(path);
    REQUIRE(listener);
    CHECK(base::connect_unix(path));
    CHECK(base::listen_unix(path).error().code == ErrorCode::kConflict);
    struct stat found{};
    REQUIRE(::stat(path.c_str(), &found) == 0);
    CHECK((found.st_mode & 0777) == 0600);
  }
  CHECK(base::connect_unix(path).error().code == ErrorCode::kGone);
}

TEST_CASE("connecting to a server that accepts nothing ends") {
  const tests::TempDir dir;
  const auto path = dir.path() / "a.sock";
  const auto listener = base::listen_unix(path);
  REQUIRE(listener);
  std::vector<base::Fd> waiting;
  while (auto fd = base::connect_unix(path)) waiting.push_back(*std::move(fd));
  CHECK(waiting.size() >= base::kBacklog);
  CHECK(base::connect_unix(path).error().code == ErrorCode::kTransient);
  CHECK(base::connect_unix(path, std::chrono::seconds{1}).error().code == ErrorCode::kTransient);
}
