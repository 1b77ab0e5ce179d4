// SPDX-License-Identifier: Apache-2.0
// Back-ends of a real QEMU: qemu-storage-daemon serves it a disk by vhost-user, and its firmware,
// which looks for something to boot, is the driver. Software emulation is enough.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "tests/catch.hpp"
#include "tests/discovery.hpp"
#include "tests/peers/qmp/qemu_process.hpp"
#include "tests/temp_dir.hpp"
#include "vmm/procfs/kvm_fds.hpp"
#include "vmm/procfs/vhost_user.hpp"
#include "vmm/threads.hpp"

using namespace ka;
using namespace std::chrono_literals;
using policy::Role;
using tests::QemuProcess;

namespace {

constexpr const char* kStorageDaemon = "/usr/bin/qemu-storage-daemon";

/// A program that is killed in the end.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }

 private:
  pid_t pid_;
};

template <typename Holds>
bool eventually(Holds holds) {
  const auto end = std::chrono::steady_clock::now() + 60s;  // a busy machine boots slowly
  while (!holds() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(50ms);
  return holds();
}

std::vector<std::string> serve_disk(const std::string& program, const std::filesystem::path& at) {
  return {program, "--blockdev", "null-co,node-name=d,size=1048576,read-zeroes=on", "--export",
          "vhost-user-blk,id=e,node-name=d,addr.type=unix,addr.path=" + at.string()};
}

std::vector<std::string> with_disk(const std::filesystem::path& socket) {
  return {"-machine", "memory-backend=ram",
          "-object",  "memory-backend-memfd,id=ram,size=64M,share=on",
          "-chardev", "socket,id=disk,path=" + socket.string(),
          "-device",  "vhost-user-blk-pci,chardev=disk,num-queues=1"};
}

/// The role of a process's threads; absent when it is no part of the sandbox.
std::optional<Role> role_of(tests::Discovery& discovery, int pid) {
  const auto found = discovery.observe(nullptr);
  REQUIRE(found);
  for (const auto& thread : found->threads) {
    if (thread.key.pid == pid) return thread.role;
  }
  return std::nullopt;
}

bool skip() {
  if (!tests::have_qemu() || ::access(kStorageDaemon, X_OK) != 0) {
    WARN("skipped: QEMU or qemu-storage-daemon is not installed");
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a back-end in the sandbox's cgroup is placed as vhost; others are left alone") {
  if (skip()) return;
  const tests::TempDir dir;
  const Program server(serve_disk(kStorageDaemon, dir.path() / "disk"));
  REQUIRE(eventually([&] { return std::filesystem::exists(dir.path() / "disk"); }));
  const QemuProcess qemu(with_disk(dir.path() / "disk"));
  const auto serves = [&] {
    const auto fds = vmm::read_fds("/proc", qemu.pid());
    if (!fds) return false;
    base::Trouble trouble;
    const auto peers = vmm::unix_peers("/proc", qemu.pid(), fds->sockets, trouble);
    CHECK(std::ranges::find(peers, server.pid()) != peers.end());
    CHECK(std::ranges::find(peers, ::getpid()) != peers.end());  // by the monitor
    return vmm::back_ends("/proc", qemu.pid(), peers, trouble) == std::vector<int>{server.pid()};
  };
  REQUIRE(eventually(serves));

  tests::Discovery alone({}, {.vmm = *vmm::identify({}, qemu.pid())});
  CHECK_FALSE(role_of(alone, server.pid()));
  dir.write("cgroup/cgroup.procs",
            std::to_string(server.pid()) + '\n' + std::to_string(::getpid()));
  tests::Discovery together(
      {}, {.vmm = *vmm::identify({}, qemu.pid()), .cgroup = (dir.path() / "cgroup").string()});
  CHECK(role_of(together, server.pid()) == Role::kVhost);
  CHECK(role_of(together, ::getpid()) == Role::kHelper);
}

TEST_CASE("virtiofsd is found in any cgroup, once the guest uses it") {
  if (skip()) return;
  const tests::TempDir dir;
  // The firmware has no driver for file systems: a disk's server by that name.
  const auto program = dir.path() / "virtiofsd";
  std::filesystem::create_symlink(kStorageDaemon, program);
  std::optional<Program> server(std::in_place, serve_disk(program, dir.path() / "disk"));
  REQUIRE(eventually([&] { return std::filesystem::exists(dir.path() / "disk"); }));
  const QemuProcess qemu(with_disk(dir.path() / "disk"));
  tests::Discovery discovery({}, {.vmm = *vmm::identify({}, qemu.pid())});
  const int pid = server->pid();
  REQUIRE(eventually([&] {
    discovery.forget();
    return role_of(discovery, pid).has_value();
  }));
  CHECK(role_of(discovery, pid) == Role::kVirtiofsd);
  CHECK_FALSE(role_of(discovery, ::getpid()));
  server.reset();
  CHECK_FALSE(role_of(discovery, pid));
}
