// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/socket.hpp"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/unix_socket.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
namespace fs = std::filesystem;

TEST_CASE("a socket is in use only if a living process listens") {
  const tests::TempDir dir;
  const std::string path = dir.path() / "shim.sock";
  CHECK_FALSE(proxy::is_served(path, "/proc"));
  {
    const auto listener = base::listen_unix(path);
    REQUIRE(listener);
    proxy::listen_in_own_name(*listener);
    CHECK(proxy::is_served(path, "/proc"));
    SECTION("an exiting process has closed its descriptors while its socket still accepts") {
      const fs::path fds = dir.path() / "proc" / std::to_string(::getpid()) / "fd";
      fs::create_directories(fds);
      CHECK_FALSE(proxy::is_served(path, dir.path() / "proc"));
      fs::create_symlink("socket:[1]", fds / "3");
      CHECK(proxy::is_served(path, dir.path() / "proc"));
    }
    SECTION("a socket with a full backlog is in use") {
      std::vector<base::Fd> crowd;
      for (auto next = proxy::connect_to(path); next; next = proxy::connect_to(path)) {
        crowd.push_back(std::move(*next));
      }
      CHECK(proxy::is_served(path, "/proc"));
    }
  }
  CHECK(fs::exists(path));
  CHECK_FALSE(proxy::is_served(path, "/proc"));
}
