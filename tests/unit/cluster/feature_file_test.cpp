// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/feature_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "affinity/cluster/view/feature_text.hpp"
#include "base/fd.hpp"
#include "base/files.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using namespace ka::cluster;

namespace {

/// What NFD has of a file: lines without empty ones.
std::string features_in(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

TEST_CASE("every state has a text of one length, with one feature or none", "[cluster]") {
  const std::string none = feature_text(std::nullopt);
  CHECK(none.find_first_not_of('\n') == std::string::npos);
  for (const NodeState state : {NodeState::kKept, NodeState::kDegraded, NodeState::kObserved,
                                NodeState::kDisabled, NodeState::kUnknown, NodeState::kBroken}) {
    const std::string text = feature_text(state);
    CHECK(text.size() == none.size());
    CHECK(features_in(text) == "kata-affinity.io/isolation=" + std::string(state_name(state)));
    CHECK(text.find_first_not_of('\n', text.find('\n')) == std::string::npos);
  }
}

TEST_CASE("the file that is mounted is overwritten, and only where the state is another",
          "[cluster]") {
  const tests::TempDir dir;
  dir.write("feature", std::string(100, 'x'));
  const auto path = dir.path() / "feature";
  const FeatureFile file(path);
  struct stat before{};
  struct stat after{};
  REQUIRE(::stat(path.c_str(), &before) == 0);
  REQUIRE(file.write(NodeState::kBroken));
  CHECK(base::read_file(path) == feature_text(NodeState::kBroken));
  // Nothing is opened for writing where nothing is to be written: NFD would look again.
  const timespec old[2] = {{1, 0}, {1, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), old, 0) == 0);
  REQUIRE(file.write(NodeState::kBroken));
  REQUIRE(::stat(path.c_str(), &after) == 0);
  CHECK(after.st_mtim.tv_sec == 1);
  CHECK(after.st_ino == before.st_ino);
  REQUIRE(file.write(std::nullopt));
  CHECK(base::read_file(path) == feature_text(std::nullopt));
}

TEST_CASE("a file that is not there is not made, and one that was removed is no file",
          "[cluster]") {
  const tests::TempDir dir;
  const auto path = dir.path() / "feature";
  CHECK(FeatureFile(path).write(NodeState::kKept).error().code == base::ErrorCode::kGone);
  CHECK_FALSE(std::filesystem::exists(path));
  dir.write("feature", "");
  const base::Fd mounted(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  std::filesystem::remove(path);
  const auto written =
      FeatureFile("/proc/self/fd/" + std::to_string(mounted.get())).write(NodeState::kKept);
  REQUIRE_FALSE(written);
  CHECK(written.error().message.find("was removed from the node") != std::string::npos);
}
