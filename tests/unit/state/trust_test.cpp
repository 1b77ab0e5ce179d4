// SPDX-License-Identifier: Apache-2.0
// Files in the state directory that others wrote, or could have written.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "affinity/state/store.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text_log.hpp"

namespace fs = std::filesystem;
using namespace ka;

namespace {

constexpr uid_t kStranger = 65534;

struct Scene {
  Scene() {
    state::Saved saved;
    saved.pod.id = "s1";
    REQUIRE(state::Store(dir.path(), "boot", log).save(saved));
  }
  state::Loaded load() const { return state::Store(dir.path(), "boot", log).load(); }

  tests::TempDir dir;
  std::string lines;
  log::Log log = tests::text_log(log::Level::kInfo, lines);
  fs::path file = dir.path() / "s1.json";
};

}  // namespace

TEST_CASE("a state file of another user is set aside, not read") {
  if (::geteuid() != 0) return;  // only root can give a file away
  const Scene scene;
  SECTION("the file") { REQUIRE(::chown(scene.file.c_str(), kStranger, kStranger) == 0); }
  SECTION("a link to a good one") {
    fs::rename(scene.file, scene.dir.path() / "good");
    fs::create_symlink("good", scene.file);
    REQUIRE(::lchown(scene.file.c_str(), kStranger, kStranger) == 0);
  }
  SECTION("what a link of ours leads to") {
    fs::rename(scene.file, scene.dir.path() / "theirs");
    REQUIRE(::chown((scene.dir.path() / "theirs").c_str(), kStranger, kStranger) == 0);
    fs::create_symlink("theirs", scene.file);
  }
  const auto loaded = scene.load();
  CHECK(loaded.pods.empty());
  REQUIRE(loaded.lost.size() == 1);
  CHECK(loaded.lost[0].pod == "s1");
  CHECK(loaded.lost[0].damaged);
  CHECK(scene.lines.find("belongs to user 65534") != std::string::npos);
}

TEST_CASE("a state file that others could write is read, and closed to them with a message") {
  const Scene scene;
  REQUIRE(::chmod(scene.file.c_str(), 0666) == 0);
  CHECK(scene.load().pods.size() == 1);
  CHECK(fs::status(scene.file).permissions() == fs::perms(0644));
  CHECK(scene.lines.find("was writable by other users") != std::string::npos);
}
