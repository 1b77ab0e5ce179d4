// SPDX-License-Identifier: Apache-2.0
// /v1/resctrl: what is refused as a whole, and the form of what holds; the record's form; and the
// files of a mount.
#include "affinity/helper/rdt_service.hpp"

#include "affinity/helper/rdt_facts.hpp"
#include "affinity/helper/rdt_records.hpp"
#include "tests/catch.hpp"
#include "tests/fake_node.hpp"
#include "tests/fake_resctrl.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text.hpp"
#include "tests/text_log.hpp"

using namespace ka;
using namespace ka::helper;

namespace {

struct Scene {
  Scene() {
    node.process(100, 1, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
    node.thread(100, 110, "CPU 0/KVM");
    resctrl.start(110);
  }

  http::Response call(const std::string& method, const std::string& body = {}) {
    return respond({{kRdtPath, rdt_verb(keeper)}},
                   {.method = method, .target = "/v1/resctrl", .body = body});
  }
  std::string task() const {
    const auto stat = base::ProcFs(node.proc()).stat(100, 110);
    return R"({"pid":100,"tid":110,"start_time":)" + std::to_string(stat->start_time) + '}';
  }
  std::string request(const std::string& tasks) const {
    return R"({"groups":[{"class":"gold","schemata":{"l3":"50%"},"tasks":[)" + tasks + "]}]}";
  }

  tests::FakeNode node;
  tests::FakeResctrl resctrl;
  tests::TempDir dir;
  std::string lines;
  log::Log logger = tests::text_log(log::Level::kInfo, lines);
  RdtKeeper keeper{resctrl, VmmThreads(node.proc()), RecordFile<RdtRecords>(dir.path(), "boot"),
                   logger};
};

constexpr const char* kHeld =
    "{\"groups\":[{\"class\":\"gold\",\"schemata\":\"L3:0=3f;1=3f\\n\",\"problem\":\"\",\"tasks\":["
    "{\"tid\":110,\"problem\":\"\"}]}],\"problem\":\"\"}\n";

}  // namespace

TEST_CASE("groups are requested, read, and given up") {
  Scene scene;
  CHECK(scene.call("POST", scene.request(scene.task())).body == kHeld);
  CHECK(scene.call("GET").body == kHeld);
  CHECK(scene.call("POST", R"({"groups":[]})").body == "{\"groups\":[],\"problem\":\"\"}\n");
  CHECK(scene.resctrl.groups().empty());
  CHECK(scene.call("PUT").status == 405);
}

TEST_CASE("a bad request changes nothing") {
  Scene scene;
  scene.call("POST", scene.request(scene.task()));
  const std::string task = R"({"pid":100,"tid":110,"start_time":1})";
  for (const std::string& body : std::vector<std::string>{
           "", "{", "[]", "{}", R"({"groups":1})", R"({"groups":[],"x":1})", R"({"groups":[{}]})",
           R"({"groups":[{"class":"../x","schemata":{"l3":"50%"},"tasks":[]}]})",
           R"({"groups":[{"class":"gold","schemata":{},"tasks":[]}]})",
           R"({"groups":[{"class":"gold","schemata":{"l3":"half"},"tasks":[]}]})",
           R"({"groups":[{"class":"gold","schemata":{"l4":"50%"},"tasks":[]}]})",
           R"({"groups":[{"class":"gold","schemata":{"mba":"0%"},"tasks":[]}]})",
           R"({"groups":[{"class":"g","schemata":{"mba":"5%"},"tasks":[]},)"
           R"({"class":"g","schemata":{"mba":"5%"},"tasks":[]}]})",
           scene.request(task + ',' + task), scene.request(R"({"pid":100,"tid":110})"),
           scene.request(R"({"pid":0,"tid":110,"start_time":1})"),
           scene.request(R"({"pid":1,"tid":0,"start_time":1})"),
           scene.request(R"({"pid":1,"tid":1,"start_time":-1})")}) {
    CAPTURE(body);
    CHECK(scene.call("POST", body).status == 400);
    CHECK(scene.resctrl.where(110) == "kata-affinity.gold");
  }
}

TEST_CASE("a request has 64 groups and 4096 threads at most") {
  const auto groups = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += (i == 0 ? "" : ",") + std::string(R"({"class":"c)") + std::to_string(i) +
              R"(","schemata":{"l3":"50%"},"tasks":[]})";
    }
    return read_groups(R"({"groups":[)" + text + "]}");
  };
  CHECK(groups(64));
  CHECK(groups(65).error().message == "groups[64]: more than 64 groups");
  const auto tasks = [](int count) {
    std::string text;
    for (int i = 1; i <= count; ++i) {
      text += (i == 1 ? "" : ",") + std::string(R"({"pid":1,"start_time":0,"tid":)") +
              std::to_string(i) + '}';
    }
    return read_groups(R"({"groups":[{"class":"c","schemata":{"l3":"50%"},"tasks":[)" + text +
                       "]}]}");
  };
  CHECK(tasks(4096));
  CHECK_FALSE(tasks(4097));
}

TEST_CASE("a record reads back the same, and a bad one does not") {
  const RdtRecords records{
      {{"gold", {policy::parse_cache_share("50%"), policy::parse_cache_share("0x3"), 20}}},
      {{{1, 2, 3}, {"gold", {"theirs", "m1"}}}, {{1, 4, 3}, {"gold", {}}}}};
  const std::string good = to_text(records, "boot");
  CHECK(from_text<RdtRecords>(good, "boot").value() == records);
  const std::string other = to_text(records, "5f0f1c2e-0000-4000-8000-000000000000");
  CHECK(from_text<RdtRecords>(other, "boot").error().code == base::ErrorCode::kGone);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = tests::without_checksum(good);
    text.replace(text.find(from), from.size(), to);
    return from_text<RdtRecords>(text, "boot");
  };
  CHECK(with("m1", "m2"));
  CHECK_FALSE(with("\"version\":1", "\"version\":2"));
  CHECK_FALSE(with("theirs", "../.."));
  CHECK_FALSE(with("m1", "a/b"));
  CHECK_FALSE(with("\"gold\"", "\"lead\""));
  CHECK_FALSE(with("\"gold\"", "\"a/b\""));
  CHECK_FALSE(with("50%", "half"));
}

TEST_CASE("where a thread is, in the kernel's words") {
  CHECK(parse_home("res:/\nmon:\n").value() == RdtHome{});
  CHECK(parse_home("res:/\nmon:m1\n").value() == RdtHome{"", "m1"});
  CHECK(parse_home("res:gold\nmon:m1\n").value() == RdtHome{"gold", "m1"});
  CHECK(parse_home("res:\nmon:\n").error().code == base::ErrorCode::kUnavailable);
  CHECK(parse_home("").error().code == base::ErrorCode::kUnavailable);
  CHECK(parse_home("res:..\nmon:\n").error().code == base::ErrorCode::kInvalid);
  CHECK(parse_home("res:a/b\nmon:\n").error().code == base::ErrorCode::kInvalid);
}

TEST_CASE("info that cannot be understood is named") {
  tests::FakeResctrl resctrl;
  CHECK(read_rdt_facts(resctrl)->groups == 4);
  CHECK(read_rdt_facts(resctrl)->l3->mask == 0x7ff);
  resctrl.machine.min_bits = -1;
  CHECK(read_rdt_facts(resctrl).error().message ==
        "resctrl: info/L3/min_cbm_bits cannot be understood");
}

TEST_CASE("the files of a mount") {
  tests::TempDir dir;
  Roots roots;
  roots.proc = dir.path() / "proc";
  roots.sys = dir.path() / "sys";
  const ResctrlFiles files(roots);
  const std::string root = (roots.sys / "fs/resctrl").string();
  dir.write("proc/self/mountinfo", "30 1 0:26 / /sys rw - sysfs sysfs rw\n");
  dir.write("sys/fs/resctrl/schemata", "L3:0=f\n");
  CHECK(files.options().error().code == base::ErrorCode::kUnavailable);
  dir.write("proc/self/mountinfo",
            "31 1 0:27 / " + root + " rw,relatime - resctrl resctrl rw,mba_MBps\n");
  CHECK(files.options().value() == "rw,mba_MBps");
  CHECK(files.read("schemata").value() == "L3:0=f\n");
  REQUIRE(files.make("gold"));
  CHECK(files.has("gold").value());
  CHECK(files.make("gold").error().number == EEXIST);
  CHECK(files.write("gold/tasks", "1").error().code == base::ErrorCode::kGone);
  REQUIRE(files.remove("gold"));
  CHECK_FALSE(files.has("gold").value());
  CHECK(files.remove("gold").error().code == base::ErrorCode::kGone);
  dir.write("proc/7/task/8/cpu_resctrl_groups", "res:gold\nmon:\n");
  CHECK(files.home({7, 8, 0}).value() == RdtHome{"gold", ""});
  CHECK(files.home({7, 9, 0}).error().code == base::ErrorCode::kGone);
}
