// SPDX-License-Identifier: Apache-2.0
// What containers are told of where they run, in folders of the test.
#include "affinity/containers/container_files.hpp"

#include <sys/stat.h>

#include <boost/json.hpp>
#include <map>

#include "base/files.hpp"
#include "tests/catch.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

using Variables = std::map<std::string, std::string>;

line::Options guest_options(bool environment, bool by_annotation = false) {
  line::Options options = tests::at_home();
  options.settings.guest.environment = environment;
  options.settings.guest.environment_by_annotation = by_annotation;
  return options;
}

/// A VM of 3 vCPUs with two containers, of which `app` owns CPUs 4 and 5.
struct Scene : tests::LineScene {
  explicit Scene(const line::Options& options = guest_options(true)) : LineScene(8, options) {
    begin();
    boot_vm(100, 3);
    REQUIRE(add("s1", 100));
    REQUIRE(container("s1", "app", {4, 5}, true));
    REQUIRE(container("s1", "log", {}, false));
  }

  /// A daemon that comes to the folders of an earlier one.
  void begin() { files.emplace(directory(), line(), board(), log); }

  fs::path directory() const { return dir.path() / "containers"; }
  fs::path file(const std::string& container) const {
    return directory() / "s1" / container / "cpus.json";
  }
  json::value content(const std::string& container) const {
    return json::parse(base::read_file(file(container)).value());
  }
  std::string environment(const std::string& container) const {
    return base::read_file(file(container).parent_path() / "environment").value();
  }
  nri::Adjustment create(const std::string& container,
                         std::optional<bool> requested = std::nullopt) {
    return files->adjust({"s1", container, requested});
  }
  bool has_files(std::optional<bool> requested = std::nullopt) {
    const auto adjustment = create("app", requested);
    CHECK(adjustment.mounts.empty() == adjustment.environment.empty());
    return !adjustment.mounts.empty();
  }

  /// Its agent placed both: vCPUs 1 and 2 are the app's, and the guest calls them CPUs 2 and 1.
  void answer() {
    board::GuestView guest;
    guest.spec.vcpus = {
        {.hardware_id = 0, .index = 0, .cpus = {6, 7}, .nodes = {0}},
        {.hardware_id = 1, .index = 1, .cpus = {4}, .nodes = {0}, .dedicated = true},
        {.hardware_id = 2, .index = 2, .cpus = {5}, .nodes = {0}, .dedicated = true}};
    guest.spec.containers = {{.id = "app", .name = "db", .hardware_ids = {1, 2}, .dedicated = true},
                             {.id = "log", .name = "log"}};
    guest.report = policy::GuestReport{
        .cpus = {{.number = 0, .hardware_id = 0, .online = true},
                 {.number = 1, .hardware_id = 2, .online = true},
                 {.number = 2, .hardware_id = 1, .online = true}},
        .common = {0},
        .containers = {{.id = "app", .wanted = {1, 2}}, {.id = "log", .wanted = {0}}}};
    board().set_guest("s1", guest);
  }

  tests::TempDir dir;
  log::Log log = tests::text_log(log::Level::kWarning, log_lines);
  std::optional<containers::ContainerFiles> files;
};

mode_t mode_of(const fs::path& path) {
  struct stat stat{};
  REQUIRE(::stat(path.c_str(), &stat) == 0);
  return stat.st_mode & 07777;
}

}  // namespace

TEST_CASE("a created container gets its directory and variables") {
  Scene scene;
  const auto adjustment = scene.create("app");
  REQUIRE(adjustment.mounts.size() == 1);
  CHECK(adjustment.mounts[0].source == scene.file("app").parent_path());
  CHECK(adjustment.mounts[0].destination == "/run/kata-affinity");
  CHECK(Variables(adjustment.environment.begin(), adjustment.environment.end()) ==
        Variables{{"KATA_AFFINITY_CPUS_FILE", "/run/kata-affinity/cpus.json"},
                  {"KATA_AFFINITY_HOST_CPUS", "4-5"},
                  {"KATA_AFFINITY_HOST_NODES", "0"},
                  {"KATA_AFFINITY_EXCLUSIVE", "true"}});
  // Not known yet.
  CHECK(scene.content("app").at("containers").as_array().empty());
  CHECK(scene.environment("app").starts_with("KATA_AFFINITY_CPUS=\"\"\n"));
}

TEST_CASE("its file follows the guest's report, and holds nothing about others") {
  Scene scene;
  scene.create("app");
  scene.answer();
  const auto containers = scene.content("app").at("containers").as_array();
  REQUIRE(containers.size() == 1);
  CHECK(containers[0].at("name") == "db");
  CHECK(containers[0].at("cpus") == "1-2");
  const auto cpu = scene.content("app").at("cpus").as_array().at(1);
  CHECK(cpu.at("cpu") == 1);
  CHECK(cpu.at("host_cpus") == "5");
  CHECK(cpu.at("host_nodes") == "0");
  CHECK(cpu.at("dedicated") == true);
  CHECK(scene.environment("app") ==
        "KATA_AFFINITY_CPUS=\"1-2\"\nKATA_AFFINITY_DEDICATED_CPUS=\"1-2\"\n"
        "KATA_AFFINITY_FLOATING_CPUS=\"\"\nKATA_AFFINITY_COMMON_CPUS=\"0\"\n"
        "KATA_AFFINITY_HOST_CPUS=\"4-5\"\nKATA_AFFINITY_HOST_NODES=\"0\"\n"
        "KATA_AFFINITY_MAP=\"1:5:0 2:4:0\"\n");
  CHECK_FALSE(fs::exists(scene.file("log")));

  scene.create("log");
  CHECK(scene.content("log").at("containers").as_array().at(0).at("cpus") == "0");
  CHECK(scene.environment("log").find("MAP=\"0:6-7:0\"") != std::string::npos);
  CHECK(scene.environment("log").find("FLOATING_CPUS=\"0\"") != std::string::npos);
}

TEST_CASE("files stay while a guest is silent or a daemon restarts") {
  Scene scene;
  scene.create("app");
  scene.answer();
  const auto before = scene.environment("app");
  SECTION("lost") {}
  SECTION("not reached yet") { scene.begin(); }
  scene.board().set_guest("s1", {});
  CHECK(scene.environment("app") == before);
  CHECK(scene.content("app").at("containers").as_array().size() == 1);
}

TEST_CASE("any user in the container may read it, whatever the daemon's umask") {
  const mode_t before = ::umask(077);
  Scene scene;
  scene.create("app");
  ::umask(before);
  CHECK(mode_of(scene.file("app")) == 0644);
  CHECK(mode_of(scene.file("app").parent_path()) == 0755);
  CHECK(mode_of(scene.directory()) == 0700);
}

TEST_CASE("no file is written if none is requested or nothing is known") {
  SECTION("by default") { CHECK_FALSE(Scene(guest_options(false)).has_files()); }
  SECTION("a pod's annotation counts only if allowed") {
    CHECK_FALSE(Scene(guest_options(false)).has_files(true));
    CHECK(Scene(guest_options(true)).has_files(false));
    CHECK(Scene(guest_options(false, true)).has_files(true));
    CHECK_FALSE(Scene(guest_options(false, true)).has_files());
    CHECK_FALSE(Scene(guest_options(true, true)).has_files(false));
    CHECK(Scene(guest_options(true, true)).has_files());
  }
  SECTION("guest = none") {
    auto options = guest_options(true);
    options.settings.guest.agent = policy::plan::GuestAgent::kNone;
    CHECK_FALSE(Scene(options).has_files());
  }
  SECTION("observe mode") {
    auto options = guest_options(true);
    options.observe = true;
    CHECK_FALSE(Scene(options).has_files());
    options.observe = options.enable = false;
    CHECK_FALSE(Scene(options).has_files());
  }
  SECTION("not a container of a VM") {
    Scene scene;
    CHECK(scene.create("another").mounts.empty());
    CHECK(scene.files->adjust({"s2", "app", true}).mounts.empty());
    CHECK_FALSE(scene.container("s1", "../app", {}, false));
    CHECK(scene.create("../app").mounts.empty());
  }
  SECTION("its directory cannot be created") {
    Scene scene;
    scene.dir.write("containers", "");
    CHECK(scene.create("app").mounts.empty());
    CHECK(scene.log_lines.find("cannot create the directory") != std::string::npos);
  }
}

TEST_CASE("files are removed with their containers, not before") {
  Scene scene;
  scene.create("app");
  scene.create("log");
  const auto gone = [&](policy::ledger::Source source) {
    scene.line().handle({source, policy::ledger::ContainerGone{"s1", "app"}});
  };
  SECTION("the container runtime removed one") {
    gone(policy::ledger::Source::kNri);
    CHECK_FALSE(fs::exists(scene.file("app").parent_path()));
    CHECK(fs::exists(scene.file("log")));
  }
  SECTION("another source no longer reports it") {
    gone(policy::ledger::Source::kCgroup);
    CHECK(fs::exists(scene.file("app")));
  }
  SECTION("the sandbox is removed") {
    REQUIRE(scene.remove("s1"));
    CHECK_FALSE(fs::exists(scene.directory() / "s1"));
  }
  SECTION("it was removed while the daemon was down") {
    scene.begin();
    scene.answer();
    CHECK(scene.content("app").at("containers").as_array().size() == 1);
    scene.files.reset();
    gone(policy::ledger::Source::kNri);
    scene.begin();
    scene.files->forget_gone();
    CHECK_FALSE(fs::exists(scene.file("app").parent_path()));
    CHECK(fs::exists(scene.file("log")));
  }
}
