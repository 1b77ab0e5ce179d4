// SPDX-License-Identifier: Apache-2.0
#include "affinity/state/store.hpp"

#include <sys/stat.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <set>

#include "base/files.hpp"
#include "base/text.hpp"
#include "policy/facts/limits.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/state/sample.hpp"

using namespace ka;
using state::Saved;
using state::Store;
using tests::kBoot;
using tests::sample;

namespace {

struct Scene {
  tests::TempDir dir;
  std::string lines;
  log::Log log = tests::text_log(log::Level::kInfo, lines);
  std::filesystem::path path() const { return dir.path() / "state"; }
  Store store() const {
    std::filesystem::create_directories(path());
    return {path(), kBoot, log};
  }
  std::vector<std::string> files() const { return *base::list_directory(path()); }
};

/// Beside the pod's file under a former name there is one with its own.
void check_newer_counts(const Scene& scene, Saved saved) {
  saved.pod.pod_name = "newer";
  REQUIRE(scene.store().save(saved));
  const auto loaded = scene.store().load();
  REQUIRE(loaded.pods.size() == 1);
  CHECK(loaded.pods[0] == saved);
}

}  // namespace

TEST_CASE("state is loaded as it was saved") {
  const Scene scene;
  REQUIRE(scene.store().save(sample()));
  const auto loaded = scene.store().load();
  REQUIRE(loaded.pods.size() == 1);
  CHECK(loaded.pods[0] == sample());
  CHECK(loaded.lost.empty());
}

TEST_CASE("a file with a VMM without its start time is rejected") {
  std::string text = tests::without_checksum(state::to_text(sample(), kBoot));
  constexpr std::string_view kField = "\"vmm_start_time\":99,";
  REQUIRE(text.find(kField) != std::string::npos);
  text.erase(text.find(kField), kField.size());
  CHECK(state::from_text(text, kBoot).error().message.find("vmm_start_time") != std::string::npos);
}

TEST_CASE("a file with a process or thread of number 0 is rejected") {
  for (const std::string field : {"\"vmm_pid\":4711", "\"proxy_pid\":4700", "\"pid\":4711",
                                  "\"pid\":4711,\"tid\":4712", "\"tid\":4712"}) {
    std::string text = tests::without_checksum(state::to_text(sample(), kBoot));
    const auto at = text.find(field);
    REQUIRE(at != std::string::npos);
    text.replace(text.find(':', at) + 1, 4, "0");
    const auto read = state::from_text(text, kBoot);
    CHECK_FALSE(read);
    if (!read) CHECK(read.error().message.find("1 or more") != std::string::npos);
  }
}

TEST_CASE("a proxy without its start time, of an earlier version, is not known") {
  std::string text = tests::without_checksum(state::to_text(sample(), kBoot));
  constexpr std::string_view kField = "\"proxy_start_time\":91,";
  REQUIRE(text.find(kField) != std::string::npos);
  text.erase(text.find(kField), kField.size());
  const auto read = state::from_text(text, kBoot);
  REQUIRE(read);
  CHECK_FALSE(read->pod.proxy);
  CHECK(read->pod.vmm == sample().pod.vmm);
}

TEST_CASE("a cgroup of an earlier version has no write under way") {
  std::string text = tests::without_checksum(state::to_text(sample(), kBoot));
  constexpr std::string_view kField = R"(,"next":"0-1")";
  REQUIRE(text.find(kField) != std::string::npos);
  text.erase(text.find(kField), kField.size());
  const auto read = state::from_text(text, kBoot);
  REQUIRE(read);
  CHECK(read->cgroup->next == read->cgroup->ours);
}

TEST_CASE("the file that was written last is loaded first") {
  const Scene scene;
  Store store = scene.store();
  for (const char* id : {"a", "b", "c"}) {
    Saved saved = sample();
    saved.pod.id = id;
    REQUIRE(store.save(saved));
    const auto age = std::chrono::hours(id == std::string("b") ? 0 : 1);
    const auto file = scene.path() / state::file_name(id);
    std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - age);
  }
  REQUIRE(scene.store().load().pods.size() == 3);
  CHECK(scene.store().load().pods.front().pod.id == "b");
}

TEST_CASE("a removed pod leaves no file") {
  const Scene scene;
  Store store = scene.store();
  REQUIRE(store.save(sample()));
  REQUIRE(store.remove("s1"));
  CHECK(scene.files().empty());
}

TEST_CASE("a file of an earlier boot is removed with a message") {
  const Scene scene;
  std::filesystem::create_directories(scene.path());
  REQUIRE(Store(scene.path(), "5f0f1c2e-0000-4000-8000-000000000000", scene.log).save(sample()));
  const auto loaded = scene.store().load();
  CHECK(loaded.pods.empty());
  CHECK(loaded.lost.empty());
  CHECK(scene.files().empty());
  CHECK(scene.lines.find("s1.json") != std::string::npos);
  CHECK(scene.lines.find("of another boot") != std::string::npos);
}

TEST_CASE("a boot that is no boot's id is damage, not another boot") {
  for (const char* boot :
       {"", "zzz", "5f0f1c2e-0000-4000-8000-00000000000", "5f0f1c2e-0000-4000-8000-00000000000g",
        "5f0f1c2e-0000-4000-8000-0000000000000", "5f0f1c2e-0000-4000_8000-000000000000"}) {
    CHECK(state::from_text(state::to_text(sample(), boot), kBoot).error().code ==
          base::ErrorCode::kInvalid);
  }
}

TEST_CASE("a file without containers or pins, or a container without CPUs, is damaged") {
  const boost::json::value good =
      boost::json::parse(tests::without_checksum(state::to_text(sample(), kBoot)));
  const auto is_read_without = [&](std::string_view name) {
    boost::json::value document = good;
    auto& pod = document.at("pod").as_object();
    const auto erased = pod.at("containers").at(0).as_object().erase(name);
    REQUIRE(erased + pod.erase(name) == 1);
    return state::from_text(boost::json::serialize(document), kBoot).has_value();
  };
  CHECK(is_read_without("shares"));
  for (const char* name : {"containers", "overrides", "cpus", "exclusive", "exited"}) {
    CHECK_FALSE(is_read_without(name));
  }
}

TEST_CASE("a listed file behind a link that leads nowhere is lost, not absent") {
  const Scene scene;
  Store store = scene.store();
  std::filesystem::create_symlink("nowhere", scene.path() / "s1.json");
  const auto lost = store.load().lost;
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].pod == "s1");
  CHECK_FALSE(lost[0].damaged);
  CHECK(store.save(sample()).error().code == base::ErrorCode::kUnavailable);
  std::filesystem::remove(scene.path() / "s1.json");
  CHECK(store.load().lost.empty());
}

TEST_CASE("a file with another pod's name is set aside, and overwrites and removes none") {
  const Scene scene;
  Saved other = sample();
  other.pod.pod_name = "forged";
  SECTION("beside the pod's own") { REQUIRE(scene.store().save(sample())); }
  SECTION("alone") { scene.store(); }
  const bool has_own = scene.files().size() == 1;
  for (const char* name : {"state/a.json", "state/z.json"}) {
    scene.dir.write(name, state::to_text(other, kBoot));
  }
  const auto loaded = scene.store().load();
  REQUIRE(loaded.pods.size() == (has_own ? 1 : 0));
  if (has_own) CHECK(loaded.pods[0] == sample());
  CHECK(loaded.lost.size() == 2);
  CHECK(std::filesystem::exists(scene.path() / "a.json.unreadable"));
  CHECK(std::filesystem::exists(scene.path() / "z.json.unreadable"));
  CHECK(std::filesystem::exists(scene.path() / "s1.json") == has_own);
}

TEST_CASE("a damaged file is set aside with a message and never overwritten") {
  const std::string good = state::to_text(sample(), kBoot);
  for (const std::string& text :
       {std::string(), std::string("{"), good.substr(0, good.size() / 2), std::string("[]"),
        std::string(R"({"version":1,"boot_id":"3f1c","pod":{"id":"s1","surprise":1}})")}) {
    const Scene scene;
    Store store = scene.store();
    scene.dir.write("state/s1.json", text);
    CHECK(store.load().pods.empty());
    CHECK(scene.lines.find("set aside") != std::string::npos);
    REQUIRE(store.save(sample()));
    CHECK(*base::read_file(scene.path() / "s1.json.unreadable") == text);
    CHECK(scene.store().load().pods.size() == 1);
  }
}

TEST_CASE("an earlier set-aside file is kept when another is set aside") {
  const Scene scene;
  for (const char* text : {"first", "second", "third"}) {
    scene.dir.write("state/s1.json", text);
    CHECK(scene.store().load().pods.empty());
  }
  CHECK(*base::read_file(scene.path() / "s1.json.unreadable") == "first");
  CHECK(*base::read_file(scene.path() / "s1.json.unreadable.2") == "second");
  CHECK(*base::read_file(scene.path() / "s1.json.unreadable.3") == "third");
}

TEST_CASE("a damaged file that is no pod's is lost state, until that does not matter any more") {
  const Scene scene;
  scene.dir.write("state/allocations.unreadable", "{");
  Store store = scene.store();
  const auto lost = store.load().lost;
  REQUIRE(lost.size() == 1);
  CHECK(lost.front().pod.empty());
  CHECK(lost.front().damaged);
  store.dismiss_damaged();
  CHECK(scene.files() == std::vector<std::string>{"allocations.obsolete"});
}

TEST_CASE("a file of a newer version is set aside, not guessed at") {
  const Scene scene;
  Store store = scene.store();
  scene.dir.write("state/s1.json", R"({"version":2,"boot_id":"3f1c","pod":{"id":"s1"}})");
  CHECK(store.load().pods.empty());
  CHECK(scene.lines.find("version 2") != std::string::npos);
  CHECK(scene.files() == std::vector<std::string>{"s1.json.unreadable"});
}

TEST_CASE("a state directory has one owner") {
  const tests::TempDir dir;
  const auto directory = dir.path() / "run" / "state";
  {
    const auto lock = state::Directory::claim(directory);
    REQUIRE(lock);
    const auto second = state::Directory::claim(directory);
    REQUIRE_FALSE(second);
    CHECK(second.error().code == base::ErrorCode::kConflict);
    CHECK(second.error().message == "another daemon uses " + directory.string());
  }
  CHECK(state::Directory::claim(directory));
  dir.write("file", "");
  CHECK_FALSE(state::Directory::claim(dir.path() / "file" / "state"));
}

TEST_CASE("a pod id cannot leave the state directory") {
  const Scene scene;
  Store store = scene.store();
  for (const char* id : {"../escape", "a/b", "a_b", "..", ""}) {
    Saved saved = sample();
    saved.pod.id = id;
    REQUIRE(store.save(saved));
  }
  CHECK(scene.files().size() == 5);
  CHECK(base::list_directory(scene.dir.path())->size() == 1);
}

TEST_CASE("the largest accepted sandbox can be written and read back") {
  policy::CpuSet apart;  // every other CPU: no text of a set is longer
  policy::NodeSet nodes;
  for (int i = 0; i < policy::kMaxIds; i += 2) apart.add(i);
  for (int i = 0; i < 1024; i += 2) nodes.add(i);
  Saved saved = sample();
  for (std::string* name : {&saved.pod.pod_uid, &saved.pod.pod_name, &saved.pod.handler}) {
    *name = std::string(base::kMaxName, 'n');
  }
  for (std::size_t i = saved.pod.containers.size(); i < policy::kMaxContainers; ++i) {
    std::string id = std::to_string(i);
    id.insert(0, base::kMaxId - id.size(), 'c');
    const policy::ContainerFacts facts{id, std::string(base::kMaxName, 'n'), apart, nodes};
    saved.pod.containers[id] = {facts, policy::ledger::Source::kNri};
  }
  const Scene scene;
  REQUIRE(scene.store().save(saved));
  const auto loaded = scene.store().load();
  REQUIRE(loaded.pods.size() == 1);
  CHECK(loaded.pods[0] == saved);
}

TEST_CASE("a state file of the largest size is written and read back, a byte more is neither") {
  const Scene scene;
  const auto file = scene.path() / "s1.json";
  Saved saved = sample();
  std::string& name = saved.pod.containers["c1"].facts.name;
  name.clear();
  REQUIRE(scene.store().save(saved));
  name.assign(state::kMaxFile - std::filesystem::file_size(file), 'n');
  REQUIRE(scene.store().save(saved));
  CHECK(std::filesystem::file_size(file) == state::kMaxFile);
  name += 'n';
  CHECK_FALSE(scene.store().save(saved));
  scene.dir.write("state/s1.json", tests::without_checksum(state::to_text(sample(), kBoot)));
  const std::string rest(state::kMaxFile - std::filesystem::file_size(file), ' ');
  std::ofstream(file, std::ios::app) << rest;
  CHECK(scene.store().load().pods.size() == 1);
  std::ofstream(file, std::ios::app) << ' ';
  CHECK(scene.store().load().pods.empty());
}

TEST_CASE("a state file that is not a regular file is set aside, without blocking") {
  const Scene scene;
  std::filesystem::create_directories(scene.path());
  REQUIRE(::mkfifo((scene.path() / "s1.json").c_str(), 0600) == 0);
  CHECK(scene.store().load().pods.empty());
  CHECK(scene.lines.find("is not a regular file") != std::string::npos);
}

TEST_CASE("no two pods share a file, and its name gives the pod") {
  const std::string ids[] = {"s1", "S1", "a/b", "a_b", "a%2Fb", "..", "", "\xff\n", "s1.json"};
  std::set<std::string> names;
  for (const std::string& id : ids) {
    names.insert(state::file_name(id));
    CHECK(state::pod_of_file(state::file_name(id)) == id);
  }
  CHECK(names.size() == std::size(ids));
  CHECK(state::pod_of_file("%2f.json").empty());
  CHECK(state::pod_of_file("lock").empty());
}

TEST_CASE("a file with an earlier version's name is renamed, and never replaces a newer one") {
  const Scene scene;
  Saved saved = sample();
  saved.pod.id = "a/b";
  const std::string own = "a%2Fb.json";
  const std::string former = "a_b-" + std::to_string(std::hash<std::string>{}("a/b")) + ".json";
  scene.dir.write("state/" + former, state::to_text(saved, kBoot));
  SECTION("alone") { CHECK(scene.store().load().pods.size() == 1); }
  SECTION("beside a newer one") { check_newer_counts(scene, saved); }
  SECTION("beside a newer one that cannot be read for the moment") {
    std::filesystem::create_symlink("nowhere", scene.path() / own);
    Store store = scene.store();
    CHECK(store.load().pods.empty());
    CHECK(scene.files().size() == 2);
    std::filesystem::remove(scene.path() / own);
    CHECK(store.load().pods.size() == 1);
  }
  CHECK(scene.files() == std::vector<std::string>{own});
}

TEST_CASE("a damaged file stays lost until resolved, also across a restart") {
  const Scene scene;
  Store store = scene.store();
  scene.dir.write("state/s1.json", "{");
  for (int i = 0; i < 2; ++i) {
    const auto lost = scene.store().load().lost;
    REQUIRE(lost.size() == 1);
    CHECK(lost[0].pod == "s1");
    CHECK(lost[0].damaged);
  }
  REQUIRE(store.load().lost.size() == 1);
  store.dismiss_damaged();
  CHECK(store.load().lost.empty());
  CHECK(scene.store().load().lost.empty());
  CHECK(scene.files() == std::vector<std::string>{"s1.json.obsolete"});
}

TEST_CASE("a briefly unreadable file is not overwritten, and read later") {
  const Scene scene;
  REQUIRE(scene.store().save(sample()));
  const auto file = scene.path() / "s1.json", away = scene.dir.path() / "away";
  std::filesystem::rename(file, away);
  std::filesystem::create_symlink(file, file);  // open(2): ELOOP
  Store store = scene.store();
  const auto lost = store.load().lost;
  REQUIRE(lost.size() == 1);
  CHECK_FALSE(lost[0].damaged);
  CHECK(store.save(sample()).error().code == base::ErrorCode::kUnavailable);
  std::filesystem::remove(file);
  CHECK(store.load().lost.empty());  // somebody removed it
  std::filesystem::rename(away, file);
  const auto loaded = store.load();
  CHECK(loaded.lost.empty());
  REQUIRE(loaded.pods.size() == 1);
  CHECK(loaded.pods[0] == sample());
  CHECK(store.load().pods.empty());
  CHECK(store.save(sample()));
}

TEST_CASE("a directory that cannot be listed is not treated as empty") {
  const Scene scene;
  REQUIRE(scene.store().save(sample()));
  const auto away = scene.dir.path() / "away";
  Store store = scene.store();
  std::filesystem::rename(scene.path(), away);
  scene.dir.write("state", "");
  const auto lost = store.load().lost;
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].file == scene.path());
  CHECK(scene.lines.find("cannot read state") != std::string::npos);
  CHECK_FALSE(store.save(sample()));
  std::filesystem::remove(scene.path());
  std::filesystem::rename(away, scene.path());
  CHECK(store.load().pods.size() == 1);
  CHECK_FALSE(store.has_lost());
}

TEST_CASE("the state of any legal id is saved, loaded, and set aside when it is damaged") {
  for (char c = ' '; c < 0x7f; ++c) {
    const std::string id(base::kMaxId, c);
    if (!base::is_id(id)) continue;
    const Scene scene;
    Saved saved = sample();
    saved.pod.id = id;
    REQUIRE(scene.store().save(saved));
    const auto loaded = scene.store().load();
    REQUIRE(loaded.pods.size() == 1);
    CHECK(loaded.pods[0] == saved);
    for (int i = 0; i < 2; ++i) {
      scene.dir.write("state/" + state::file_name(id), "{");
      CHECK(scene.store().load().lost.back().pod == id);
    }
    CHECK(scene.files().size() == 2);
  }
}

TEST_CASE("a file whose name has %2E for a dot is that of its pod, until there is a newer one") {
  const Scene scene;
  Saved saved = sample();
  saved.pod.id = "a.b";
  scene.dir.write("state/a%2Eb.json", state::to_text(saved, kBoot));
  SECTION("alone") { CHECK(scene.store().load().pods.size() == 1); }
  SECTION("beside a newer one") { check_newer_counts(scene, saved); }
  CHECK(scene.files() == std::vector<std::string>{"a.b.json"});
}

TEST_CASE("an unreadable file with %2E for a dot is that of its pod") {
  const Scene scene;
  Saved saved = sample();
  saved.pod.id = "a.b";
  Store store = scene.store();
  std::filesystem::create_symlink("nowhere", scene.path() / "a%2Eb.json");
  const auto lost = store.load().lost;
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].pod == "a.b");
  CHECK(store.save(saved).error().code == base::ErrorCode::kUnavailable);
}
