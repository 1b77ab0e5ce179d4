// SPDX-License-Identifier: Apache-2.0
// The CDI files are those that dra-driver-cpu de980986 wrote when its PrepareResourceClaims() was
// called for individual devices, for grouped ones and for CPUs that an external allocator chose.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "shim-ext/dra/cdi_file.hpp"
#include "shim-ext/dra/claim_directory.hpp"
#include "shim-ext/dra/dra_source.hpp"
#include "tests/catch.hpp"
#include "tests/failing_inotify.hpp"
#include "tests/run_loop.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/shim-ext/recording_node.hpp"

using namespace ka;
using policy::CpuSet;
using policy::ledger::PreparedClaim;
using policy::ledger::Source;
using Claims = std::vector<PreparedClaim>;
using Lines = std::vector<std::string>;

namespace {

const std::string kIndividual = "5f0c2b1e-0c5e-4b3f-9a51-1d2e3f4a5b6c";
const std::string kGrouped = "a1b2c3d4-1111-4222-8333-444455557777";
const std::string kExternal = "0e9d8c7b-aaaa-4bbb-8ccc-ddddeeeeffff";

std::string file_of(const std::string& uid, const std::string& cpus) {
  return R"({"cdiVersion":"0.8.0","kind":"dra.k8s.io/cpu","devices":[{"name":"claim-)" + uid +
         R"(","containerEdits":{"env":["DRA_CPUSET_)" + uid + "=" + cpus +
         R"("]}}],"containerEdits":{}})";
}

std::string name_of(const std::string& uid) { return "dra.k8s.io-cpu_claim-" + uid + ".json"; }

struct Scene {
  Scene() { std::filesystem::create_directory(cdi); }

  /// As the driver does it: a temporary file, renamed.
  void prepare(const std::string& uid, const std::string& cpus) const {
    write(uid, file_of(uid, cpus));
  }
  void write(const std::string& uid, const std::string& text) const {
    dir.write("cdi/spec.1.tmp", text);
    ::chmod((cdi / "spec.1.tmp").c_str(), 0600);
    std::filesystem::rename(cdi / "spec.1.tmp", cdi / name_of(uid));
  }
  void unprepare(const std::string& uid) const { std::filesystem::remove(cdi / name_of(uid)); }

  tests::TempDir dir;
  std::filesystem::path cdi = dir.path() / "cdi";
};

struct SourceScene : Scene {
  void run_ready() { tests::run_ready(io); }

  tests::TestClock clock;
  tests::RecordingNode node{clock};
  std::string log_lines;
  log::Log log = tests::text_log(log::Level::kInfo, log_lines);
  boost::asio::io_context io;
};

const Lines kReported{"narrow within no deadline: dra", "finish "};

}  // namespace

TEST_CASE("the driver's files for individual and grouped devices, and for chosen CPUs") {
  CHECK(*dra::parse_cdi_file(file_of(kIndividual, "1,5"), kIndividual) ==
        PreparedClaim{kIndividual, {1, 5}});
  CHECK(*dra::parse_cdi_file(file_of(kGrouped, "2-3,6-7"), kGrouped) ==
        PreparedClaim{kGrouped, {2, 3, 6, 7}});
  CHECK(*dra::parse_cdi_file(file_of(kExternal, "2-5"), kExternal) ==
        PreparedClaim{kExternal, {2, 3, 4, 5}});
  CHECK(dra::claim_of_name(name_of(kGrouped)) == kGrouped);
}

TEST_CASE("other CDI files name no claim") {
  for (const char* name :
       {"nvidia.yaml", "dra.k8s.io-gpu_claim-u1.json", "dra.k8s.io-cpu_claim-.json",
        "dra.k8s.io-cpu_claim-u1.json.tmp", "dra.k8s.io-cpu_claim-u 1.json", "spec.123.tmp", ""}) {
    INFO(name);
    CHECK(dra::claim_of_name(name).empty());
  }
}

TEST_CASE("a file that is not what the driver writes is refused") {
  const std::string good = file_of("u1", "2-3");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  REQUIRE(dra::parse_cdi_file(good, "u1"));
  CHECK_FALSE(dra::parse_cdi_file(good, "u2"));
  for (const std::string& text :
       {std::string(), std::string("[]"), good.substr(0, 60), with("dra.k8s.io/cpu", "x.io/cpu"),
        with("\"claim-u1\"", "\"claim-u2\""), with("DRA_CPUSET_u1", "DRA_CPUSET_u2"),
        with("=2-3", "="), with("=2-3", "=3-2"), with("=2-3", "=2-3\\n"), with("=2-3", ""),
        with("[\"DRA_CPUSET_u1=2-3\"]", "7"), with("[{\"name\"", "[{},{\"name\"")}) {
    INFO(text);
    CHECK_FALSE(dra::parse_cdi_file(text, "u1"));
  }
}

TEST_CASE("only regular files that root alone can write are read, and none through a link") {
  const Scene scene;
  scene.prepare("u1", "2-3");
  scene.prepare("u2", "4");
  scene.prepare("u3", "5");
  scene.prepare("u4", "6");
  scene.dir.write("elsewhere", file_of("u5", "7"));
  std::filesystem::create_symlink(scene.dir.path() / "elsewhere", scene.cdi / name_of("u5"));
  ::mkfifo((scene.cdi / name_of("u6")).c_str(), 0600);
  std::filesystem::create_directory(scene.cdi / name_of("u7"));
  scene.write("u8", std::string(dra::kMaxCdiFile, ' ') + file_of("u8", "1"));
  ::chmod((scene.cdi / name_of("u2")).c_str(), 0660);
  ::chmod((scene.cdi / name_of("u3")).c_str(), 0602);
  dra::ClaimDirectory directory(scene.cdi);
  REQUIRE(directory.read());
  CHECK(directory.claims() == Claims{{"u1", {2, 3}}, {"u4", {6}}});
  CHECK(directory.problems().size() == 6);
}

TEST_CASE("a file of another user proves nothing") {
  if (::geteuid() != 0) return;  // cannot give a file away
  const Scene scene;
  scene.prepare("u1", "2-3");
  REQUIRE(::chown((scene.cdi / name_of("u1")).c_str(), 65532, 0) == 0);
  dra::ClaimDirectory directory(scene.cdi);
  REQUIRE(directory.read());
  CHECK(directory.claims().empty());
}

TEST_CASE("a directory that others can write, or that is a link, is not read") {
  const Scene scene;
  scene.prepare("u1", "2-3");
  std::filesystem::create_directory_symlink(scene.cdi, scene.dir.path() / "link");
  CHECK_FALSE(dra::ClaimDirectory(scene.dir.path() / "link").read());
  ::chmod(scene.cdi.c_str(), 0777);
  dra::ClaimDirectory directory(scene.cdi);
  CHECK(directory.read().error().code == base::ErrorCode::kInvalid);
  CHECK(dra::ClaimDirectory(scene.dir.path() / "none").read().error().code ==
        base::ErrorCode::kGone);
}

TEST_CASE("a claim whose file is damaged later keeps its CPUs until the file goes") {
  const Scene scene;
  dra::ClaimDirectory directory(scene.cdi);
  scene.prepare("u1", "2-3");
  REQUIRE(directory.read());
  scene.write("u1", "{");
  scene.write("u2", "{");
  REQUIRE(directory.read());
  CHECK(directory.claims() == Claims{{"u1", {2, 3}}});
  CHECK(directory.problems().size() == 2);
  scene.unprepare("u1");
  scene.prepare("u2", "4");
  REQUIRE(directory.read());
  CHECK(directory.claims() == Claims{{"u2", {4}}});
  CHECK(directory.problems().empty());
}

TEST_CASE("Prepare and Unprepare are reported at once, each change once") {
  SourceScene scene;
  scene.prepare("u1", "2-3");
  dra::DraSource source(scene.io, scene.cdi, scene.node, scene.log);
  CHECK(scene.node.drain() == kReported);
  CHECK(scene.node.known.exclusive() == CpuSet{2, 3});
  CHECK(scene.node.statuses[Source::kDra].text == "1 claim is prepared, on CPUs 2-3");
  source.refresh();
  CHECK(scene.node.drain().empty());
  scene.prepare("u2", "4");
  scene.run_ready();
  CHECK(scene.node.drain() == kReported);
  CHECK(scene.node.known.exclusive() == CpuSet{2, 3, 4});
  scene.unprepare("u1");
  scene.run_ready();
  CHECK(scene.node.drain() == kReported);
  CHECK(scene.node.known.exclusive() == CpuSet{4});
  CHECK(scene.node.statuses[Source::kDra].text == "1 claim is prepared, on CPU 4");
  CHECK(scene.log_lines.empty());
}

TEST_CASE("a claim is known before the runtime is answered about its container") {
  SourceScene scene;
  dra::DraSource source(scene.io, scene.cdi, scene.node, scene.log);
  CHECK(scene.node.drain() == kReported);  // none is prepared: the start need not wait for more
  scene.prepare("u1", "2-3");
  source.catch_up(base::Deadline::none());
  CHECK(scene.node.drain() == Lines{"narrow within no deadline: dra"});
}

TEST_CASE("a node without the directory has no such source, until it comes") {
  SourceScene scene;
  std::filesystem::remove(scene.cdi);
  dra::DraSource source(scene.io, scene.cdi, scene.node, scene.log);
  CHECK(scene.node.drain().empty());
  CHECK(scene.node.statuses.empty());
  std::filesystem::create_directory(scene.cdi);
  scene.prepare("u1", "2-3");
  scene.run_ready();
  CHECK(scene.node.known.exclusive() == CpuSet{2, 3});
  scene.unprepare("u1");
  std::filesystem::remove(scene.cdi);
  scene.run_ready();
  CHECK(scene.node.known.exclusive().empty());
  CHECK_FALSE(scene.node.statuses[Source::kDra].up);
}

TEST_CASE("a directory that cannot be read for a while, and is not there then, is no fault") {
  SourceScene scene;
  std::filesystem::remove(scene.cdi);
  std::filesystem::create_symlink(scene.cdi, scene.cdi);
  dra::DraSource source(scene.io, scene.cdi, scene.node, scene.log);
  CHECK_FALSE(scene.node.statuses[Source::kDra].absent);
  std::filesystem::remove(scene.cdi);
  source.refresh();
  CHECK(scene.node.statuses[Source::kDra].absent);
}

TEST_CASE("the directory comes before the runtime is answered, goes, and comes again") {
  SourceScene scene;
  std::filesystem::remove(scene.cdi);
  dra::DraSource source(scene.io, scene.cdi, scene.node, scene.log);
  for (int times = 0; times < 2; ++times) {
    source.catch_up(base::Deadline::none());
    CHECK(scene.node.known.exclusive().empty());
    std::filesystem::create_directory(scene.cdi);
    scene.prepare("u1", "2-3");
    source.catch_up(base::Deadline::none());
    CHECK(scene.node.known.exclusive() == CpuSet{2, 3});
    scene.unprepare("u1");
    std::filesystem::remove(scene.cdi);
    source.catch_up(base::Deadline::none());
    CHECK(scene.node.known.exclusive().empty());
  }
  scene.run_ready();
  std::filesystem::create_directory(scene.cdi);
  scene.prepare("u1", "2-3");
  scene.run_ready();
  CHECK(scene.node.known.exclusive() == CpuSet{2, 3});
}

TEST_CASE("a file that is not used is in the status and the log, once") {
  SourceScene scene;
  scene.write("u1", "{");
  dra::DraSource source(scene.io, scene.cdi, scene.node, scene.log);
  source.refresh();
  CHECK_FALSE(scene.node.statuses[Source::kDra].up);
  CHECK(scene.node.statuses[Source::kDra].text.find(name_of("u1")) != std::string::npos);
  CHECK(scene.log_lines.find(name_of("u1")) == scene.log_lines.rfind(name_of("u1")));
  CHECK_FALSE(scene.log_lines.empty());
}

TEST_CASE("without inotify claims are late, until there is one again") {
  SourceScene scene;
  tests::InotifyFails fails({.watch = ENOSPC});
  dra::DraSource source(scene.io, scene.cdi, scene.node, scene.log);
  CHECK(scene.node.late[Source::kDra]);
  scene.prepare("u1", "2-3");
  scene.run_ready();
  CHECK(scene.node.known.exclusive().empty());
  source.refresh();
  CHECK(scene.node.known.exclusive() == CpuSet{2, 3});

  fails.end();
  source.refresh();
  CHECK_FALSE(scene.node.late[Source::kDra]);
  scene.prepare("u2", "4");
  scene.run_ready();
  CHECK(scene.node.known.exclusive() == CpuSet{2, 3, 4});
}
