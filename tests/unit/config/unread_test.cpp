// SPDX-License-Identifier: Apache-2.0
// What cannot be read now is neither invalid (the daemon would not be started again) nor absent.
#include "affinity/config/config.hpp"
#include "tests/catch.hpp"
#include "tests/few_descriptors.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
namespace fs = std::filesystem;

TEST_CASE("a configuration that cannot be read now is not called invalid, nor absent") {
  const tests::TempDir root;
  const auto main = root.path() / "etc/kata-containers/configuration.toml";
  root.write(main.lexically_relative(root.path()), "[affinity]\n");
  const tests::TempDir other;
  fs::create_directories(other.path() / "opt/kata");
  const tests::FewDescriptors few;
  const std::vector<base::Fd> taken = tests::open_all();
  CHECK(config::load_config(main).error().code == base::ErrorCode::kTransient);
  CHECK(config::load_config(std::nullopt, root.path()).error().code == base::ErrorCode::kTransient);
  const auto unseen = config::load_config(std::nullopt, other.path());
  REQUIRE_FALSE(unseen);
  CHECK(unseen.error().message == (other.path() / "opt").string() + ": Too many open files");
}

TEST_CASE("a drop-in that leads nowhere may come back") {
  const tests::TempDir dir;
  dir.write("c.toml", "[affinity]\n");
  dir.link("config.d/50-x.toml", "nowhere");
  CHECK(config::load_config(dir.path() / "c.toml").error().code == base::ErrorCode::kTransient);
}
