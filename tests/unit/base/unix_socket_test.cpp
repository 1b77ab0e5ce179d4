#include "affinity/base/unix_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>

#include <string>

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using base::ErrorCode;

TEST_CASE("a path must fit into a socket's address") {
  CHECK(base::unix_address(std::string(107, 'a')));
  CHECK(base::unix_address(std::string(108, 'a')).error().code == ErrorCode::kInvalid);
  CHECK(base::unix_address("").error().code == ErrorCode::kInvalid);
  CHECK(base::connect_unix(std::string(200, 'a'), 0).error().code == ErrorCode::kInvalid);
  CHECK(base::listen_unix(std::string(200, 'a')).error().code == ErrorCode::kInvalid);
}

TEST_CASE("who listens is found, alone, and private") {
  const tests::TempDir dir;
  const auto path = dir.path() / "a.sock";
  CHECK(base::connect_unix(path, 0).error().code == ErrorCode::kGone);
  {
    const auto listener = base::listen_unix(path);
    REQUIRE(listener);
    CHECK(base::connect_unix(path, SOCK_NONBLOCK));
    CHECK(base::listen_unix(path).error().code == ErrorCode::kConflict);
    struct stat found{};
    REQUIRE(::stat(path.c_str(), &found) == 0);
    CHECK((found.st_mode & 0777) == 0600);
  }
  CHECK(base::connect_unix(path, 0).error().code == ErrorCode::kGone);
}
