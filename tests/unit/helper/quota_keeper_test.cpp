// SPDX-License-Identifier: Apache-2.0
// CFS quotas of cgroups: taken away, kept away, recorded, refused, and given back.
#include "affinity/helper/quota_keeper.hpp"

#include "tests/catch.hpp"
#include "tests/fake_cgroup_tree.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text_log.hpp"

using namespace ka;
using namespace ka::helper;

namespace {

constexpr const char* kPod = "/kubepods/pod1";
constexpr const char* kSandbox = "/kubepods/pod1/s1";
constexpr const char* kOther = "/kubepods/pod2";

/// Two pods with a quota; the sandbox in the first one has none of its own.
struct Scene {
  Scene() {
    tree.quotas = {{kPod, "200000 100000"}, {kSandbox, "max 100000"}, {kOther, "50000 20000"}};
    before = tree.quotas;
    restart();
  }

  std::string quota(const char* cgroup) const { return tree.quotas.at(cgroup); }
  RecordFile<QuotaRecords> file() const { return {dir.path(), "boot"}; }
  /// A helper that was killed and started again.
  void restart() {
    keeper.emplace(tree, file(), logger);
    keeper->adopt();
  }
  bool is_as_before() const { return tree.quotas == before && !keeper->holds(); }

  tests::FakeCgroupTree tree;
  std::map<std::string, std::string> before;
  tests::TempDir dir;
  std::string lines;
  log::Log logger = tests::text_log(log::Level::kInfo, lines);
  std::optional<QuotaKeeper> keeper;
};

}  // namespace

TEST_CASE("cgroups have no quota, others keep theirs, and in the end all have what they had") {
  Scene scene;
  scene.keeper->keep({kPod, kSandbox});
  CHECK(scene.quota(kPod) == "max 100000");
  CHECK(scene.quota(kOther) == "50000 20000");
  CHECK(scene.keeper->problem_of(kPod).empty());
  CHECK(scene.tree.writes == 1);
  scene.keeper->check();
  CHECK(scene.tree.writes == 1);
  scene.keeper->keep({kOther});
  CHECK(scene.quota(kPod) == "200000 100000");
  CHECK(scene.quota(kOther) == "max 100000");
  scene.keeper->keep({});
  CHECK(scene.is_as_before());
  CHECK_FALSE(std::filesystem::exists(scene.file().path()));
}

TEST_CASE("a quota that kubelet sets meanwhile is taken away, and is what comes back") {
  Scene scene;
  scene.keeper->keep({kPod, kSandbox});
  scene.tree.quotas[kPod] = "400000 100000";
  scene.tree.quotas[kSandbox] = "300000 100000";
  scene.keeper->check();
  CHECK(scene.quota(kPod) == "max 100000");
  CHECK(scene.quota(kSandbox) == "max 100000");
  scene.keeper->keep({});
  CHECK(scene.quota(kPod) == "400000 100000");
  CHECK(scene.quota(kSandbox) == "300000 100000");

  scene.keeper->keep({kPod});
  scene.tree.quotas[kPod] = "100000 100000";
  scene.keeper->keep({});
  CHECK(scene.quota(kPod) == "100000 100000");
}

TEST_CASE("quotas of a helper that was killed: the next one keeps, and restores") {
  Scene scene;
  scene.keeper->keep({kPod});
  scene.restart();
  CHECK(scene.keeper->holds());
  scene.tree.quotas[kPod] = "200000 100000";
  scene.keeper->check();
  CHECK(scene.quota(kPod) == "max 100000");
  scene.restart();
  scene.keeper->keep({});
  CHECK(scene.is_as_before());
}

TEST_CASE("a quota is recorded before it is taken away, and stays where that fails") {
  Scene scene;
  bool was_recorded = false;
  scene.tree.before_write = [&](const std::string&) {
    const auto records = scene.file().load();
    was_recorded =
        records && records->quotas == std::map<std::string, std::string>{{kPod, "200000 100000"}};
  };
  scene.keeper->keep({kPod});
  CHECK(was_recorded);
  scene.keeper->keep({});
  scene.tree.before_write = {};
  std::filesystem::create_directory(scene.file().path());
  scene.keeper->keep({kPod});
  CHECK(scene.quota(kPod) == "200000 100000");
  CHECK(scene.keeper->problem_of(kPod) == "/kubepods/pod1: it cannot be recorded");
}

TEST_CASE("what the kernel refuses is named, and nothing is claimed of it") {
  Scene scene;
  scene.tree.refuses[std::string(kPod) + "/cpu.max"] = EACCES;
  scene.keeper->keep({kPod, kSandbox});
  CHECK(scene.keeper->problem_of(kPod).starts_with("/kubepods/pod1: "));
  CHECK(scene.keeper->problem_of(kSandbox).empty());
  scene.tree.refuses.clear();
  scene.keeper->check();
  CHECK(scene.keeper->problem_of(kPod).empty());
  scene.tree.version = 1;
  scene.keeper->check();
  CHECK(scene.keeper->problem() == "it takes cgroup v2");
}

TEST_CASE("a quota that cannot be given back now is given back later") {
  Scene scene;
  scene.keeper->keep({kPod});
  scene.tree.refuses[std::string(kPod) + "/cpu.max"] = EBUSY;
  scene.keeper->keep({});
  CHECK(scene.keeper->holds());
  scene.tree.refuses.clear();
  scene.keeper->check();
  CHECK(scene.is_as_before());
}

TEST_CASE("a pod that ends, and a cgroup without the cpu controller, need nothing") {
  Scene scene;
  scene.keeper->keep({kPod, "/kubepods/pod1/s1/kata-affinity"});
  CHECK(scene.keeper->problem_of("/kubepods/pod1/s1/kata-affinity").empty());
  scene.tree.quotas.erase(kPod);
  scene.keeper->check();
  CHECK(scene.keeper->problem_of(kPod).empty());
  scene.keeper->keep({});
  CHECK_FALSE(scene.keeper->holds());
}

TEST_CASE("a damaged record of quotas: nothing is written, and it says why") {
  Scene scene;
  const std::string head = R"({"version":1,"boot_id":"boot","quotas":[)";
  const auto text =
      GENERATE_COPY(std::string("{"), head + R"({"cgroup":"/../x","theirs":"200000 100000"}]})",
                    head + R"({"cgroup":"/kubepods/pod1","theirs":"max 100000"}]})");
  CAPTURE(text);
  scene.dir.write("quotas.json", text);
  scene.restart();
  scene.keeper->keep({kPod});
  CHECK(scene.tree.quotas == scene.before);
  CHECK(scene.keeper->problem().find("nothing is written") != std::string::npos);
}
