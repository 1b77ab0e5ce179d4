// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include "tests/catch.hpp"
#include "tests/discovery.hpp"
#include "tests/unit/vmm/fixture.hpp"
#include "vmm/threads.hpp"

using namespace ka;
using ka::tests::FakeNode;
using ka::tests::process_id;
using ka::tests::roots_of;

namespace {

constexpr const char* kKata = "/usr/bin/containerd-shim-kata-v2";

void shim(const FakeNode& node, int pid, const std::string& program,
          const std::vector<std::string>& words) {
  node.process(pid, 1, "containerd-shim", program);
  std::vector<std::string> all{program, "-namespace", "k8s.io"};
  all.insert(all.end(), words.begin(), words.end());
  node.arguments(pid, all);
}

}  // namespace

TEST_CASE("shims are recognized by the sandbox that they serve") {
  const FakeNode node;
  shim(node, 10, kKata, {"-address", "/c.sock", "-id", "s1"});
  shim(node, 20, kKata, {"-id", "s2", "-debug"});
  CHECK(vmm::find_shims(roots_of(node)) ==
        std::map<std::string, policy::ProcessId>{{"s1", process_id(10)}, {"s2", process_id(20)}});
}

TEST_CASE("a shim is found by its pid file, if the pid is still its own") {
  const FakeNode node;
  const tests::TempDir run;
  shim(node, 10, kKata, {"-id", "s1"});
  const auto find = [&](const char* sandbox) {
    return vmm::shim_by_bundle(roots_of(node), run.path() / "tasks", sandbox);
  };
  CHECK_FALSE(find("s1"));
  run.write("tasks/moby/other/shim.pid", "10");
  run.write("tasks/k8s.io/s1/shim.pid", "10");
  CHECK(find("s1") == process_id(10));
  CHECK_FALSE(find("other"));
  run.write("tasks/k8s.io/s1/shim.pid", "");
  CHECK_FALSE(find("s1"));
}

TEST_CASE("a shim's pid file is a regular file of 64 bytes at most, and others block nothing") {
  const FakeNode node;
  const tests::TempDir run;
  shim(node, 10, kKata, {"-id", "s1"});
  const auto is_found = [&] {
    const auto tasks = run.path() / "tasks";
    const bool found = vmm::shim_by_bundle(roots_of(node), tasks, "s1") == process_id(10);
    const auto starting = vmm::shim_in_bundle(roots_of(node), tasks / "k8s.io/s1", "s1");
    CHECK((starting.kind == vmm::ShimKind::kKata) == found);
    return found;
  };
  run.write("tasks/k8s.io/s1/shim.pid", std::string(62, '0') + "10");
  CHECK(is_found());
  run.write("tasks/k8s.io/s1/shim.pid", std::string(63, '0') + "10");
  CHECK_FALSE(is_found());
  const auto file = run.path() / "tasks/k8s.io/s1/shim.pid";
  std::filesystem::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  CHECK_FALSE(is_found());
}

TEST_CASE("processes without a Kata sandbox are not its shims") {
  const FakeNode node;
  shim(node, 10, kKata, {"-id", "s1", "start"});
  shim(node, 11, kKata, {"-id", "s1", "delete"});
  shim(node, 12, "/usr/bin/containerd-shim-runc-v2", {"-id", "s1"});
  shim(node, 13, "/usr/bin/containerd-shim-kata-affinity-v2", {"-id", "s1"});
  shim(node, 14, kKata, {"-id"});
  node.process(15, 1, "sh", "/bin/sh");
  node.arguments(15, {"/bin/sh", "-id", "s1"});
  CHECK(vmm::find_shims(roots_of(node)).empty());
}

TEST_CASE("a shim's VMM is its child, or itself") {
  const FakeNode node;
  shim(node, 10, kKata, {"-id", "s1"});
  CHECK_FALSE(vmm::vmm_of_shim(roots_of(node), process_id(10)));
  node.process(11, 10, "virtiofsd", "/usr/libexec/virtiofsd");
  node.process(12, 10, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
  node.thread(10, 17, "containerd-shim");
  node.children(10, "11 ");
  CHECK_FALSE(vmm::vmm_of_shim(roots_of(node), process_id(10)));
  node.children(10, "11 12 ");
  CHECK(vmm::vmm_of_shim(roots_of(node), process_id(10)).value() == process_id(12));
  node.thread(10, 10, "containerd-shim", 1, 7);
  CHECK_FALSE(vmm::vmm_of_shim(roots_of(node), process_id(10)));
  shim(node, 20, kKata, {"-id", "s2"});
  node.fd(20, 9, "anon_inode:kvm-vm");
  CHECK(vmm::vmm_of_shim(roots_of(node), process_id(20)).value() == process_id(20));
}

TEST_CASE("that a shim has no VMM is not said while one of its processes cannot be read") {
  const FakeNode node;
  shim(node, 10, kKata, {"-id", "s1"});
  node.process(11, 10, "virtiofsd", "/usr/libexec/virtiofsd");
  node.process(12, 10, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
  node.children(10, "11 ");
  const auto code = [&] { return vmm::vmm_of_shim(roots_of(node), process_id(10)).error().code; };
  REQUIRE(code() == base::ErrorCode::kGone);
  const auto hide = [&](const std::string& file) {
    std::filesystem::remove_all(node.proc() / file);
    std::filesystem::create_symlink(node.proc() / file, node.proc() / file);  // open(2): ELOOP
  };
  SECTION("the list of its children") { hide("10/task/10/children"); }
  SECTION("a child's open files") { hide("11/fd"); }
  SECTION("its own open files") { hide("10/fd"); }
  SECTION("a child") {
    node.children(10, "11 12 ");
    hide("12/task/12/stat");
  }
  CHECK(code() != base::ErrorCode::kGone);
}

TEST_CASE("a shim without a VM yet is observed as a shim") {
  const FakeNode node;
  shim(node, 10, kKata, {"-id", "s1"});
  node.thread(10, 11, "tokio-runtime-w");
  const auto found = tests::discover(roots_of(node), {.vmm = process_id(10)}, nullptr);
  REQUIRE(found);
  REQUIRE(found->threads.size() == 2);
  for (const auto& thread : found->threads) CHECK(thread.role == policy::Role::kShim);
}

TEST_CASE("shims that start are found by one walk, each by its sandbox") {
  const FakeNode node;
  const tests::TempDir run;
  shim(node, 10, kKata, {"-id", "s1"});
  shim(node, 11, kKata, {"-id", "s2", "start"});
  shim(node, 12, "/usr/bin/containerd-shim-runc-v2", {"-id", "r1", "start"});
  shim(node, 13, "/usr/bin/containerd-shim-kata-affinity-v2", {"-id", "s3"});
  shim(node, 14, kKata, {"-id"});
  node.process(15, 1, "sh", "/bin/sh");
  node.arguments(15, {"/bin/sh", "-id", "s4"});
  const auto found = vmm::starting_shims(roots_of(node));
  REQUIRE(found.size() == 2);
  CHECK(found.at("s1").kind == vmm::ShimKind::kKata);
  CHECK(found.at("s1").id == process_id(10));
  CHECK(found.at("r1").kind == vmm::ShimKind::kOther);
  run.write("s1/shim.pid", "10");
  CHECK(vmm::shim_in_bundle(roots_of(node), run.path() / "s1", "s1").id == process_id(10));
  CHECK(vmm::shim_in_bundle(roots_of(node), run.path() / "s1", "s2").kind == vmm::ShimKind::kNone);
}
