// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/node.hpp"

#include <unistd.h>

#include <boost/json/object.hpp>
#include <utility>

#include "affinity/cli/client/daemon.hpp"
#include "base/fd.hpp"
#include "base/unix_socket.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using namespace ka::cli::selftest;

namespace {

void add_daemon(const tests::TempDir& root, const std::string& pid, const std::string& mode) {
  using namespace std::string_literals;
  root.write("proc/" + pid + "/cmdline", "kata-affinityd\0--config\0/etc/"s + pid + ".toml\0"s);
  root.write("proc/" + pid + "/stat", pid + " (kata-affinityd) S 1\n");
  root.write("etc/" + pid + ".toml", "[affinity]\nmode = \"" + mode + "\"\n");
}

boost::json::object settings_of(const tests::TempDir& root, std::optional<int> daemon) {
  const auto nothing = [](const std::vector<std::string>&) {
    return base::Result<std::string>(base::fail(base::ErrorCode::kNotFound, "not installed"));
  };
  return describe_node(root.path(), nothing, daemon).at("settings").as_object();
}

}  // namespace

TEST_CASE("self-test, node: the settings are those of the daemon that is asked") {
  const tests::TempDir root;
  add_daemon(root, "10", "observe");
  add_daemon(root, "20", "follow");
  CHECK(settings_of(root, 20).at("mode") == "follow");
  CHECK(settings_of(root, 20).at("file").as_string() == (root.path() / "etc/20.toml").native());
  CHECK(settings_of(root, std::nullopt).empty());
}

TEST_CASE("self-test, node: the daemon is the process that listens at its socket") {
  const tests::TempDir dir;
  const auto path = dir.path() / "api.sock";
  CHECK_FALSE(cli::Daemon(path.native()).pid());
  const base::Fd listening = std::move(*base::listen_unix(path));
  CHECK(cli::Daemon(path.native()).pid() == ::getpid());
}
