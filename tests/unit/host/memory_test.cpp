// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/memory.hpp"
#include "affinity/host/node_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "affinity/host/memory_mover.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using host::Mapping;

namespace {

constexpr std::uint64_t kPage = 4096, kHuge = 2 << 20;

constexpr const char* kNumaMaps =
    "55d0c0000000 default file=/usr/bin/qemu-system-x86_64 mapped=100 N0=100 kernelpagesize_kB=4\n"
    "55d0c1000000 default heap anon=10 dirty=10 N0=4 N1=6 kernelpagesize_kB=4\n"
    "7f0000000000 default anon=512 dirty=512 N1=512 kernelpagesize_kB=4\n"
    "7f0040000000 default file=/memfd:ram\\040(deleted) dirty=8 N1=8 kernelpagesize_kB=4\n"
    "7f0080000000 default file=/dev/hugepages/ram huge anon=2 dirty=2 N0=2 kernelpagesize_kB=2048\n"
    "7f00c0000000 bind:1 anon=16 dirty=16 N1=16 kernelpagesize_kB=4\n"
    "7f00d0000000 prefer (many):0-1 anon=1 dirty=1 N0=1 kernelpagesize_kB=4\n"
    "7ffc00000000 default stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4\n"
    "7ffd00000000 default\n";

constexpr const char* kMaps =
    "55d0c0000000-55d0c0100000 r-xp 00000000 08:01 1 /usr/bin/qemu-system-x86_64\n"
    "55d0c1000000-55d0c1010000 rw-p 00000000 00:00 0 [heap]\n"
    "7f0000000000-7f0000200000 rw-p 00000000 00:00 0 \n"
    "7f0040000000-7f0040008000 rw-s 00000000 00:01 2 /memfd:ram (deleted)\n"
    "7f0080000000-7f0080400000 rw-s 00000000 00:0f 3 /dev/hugepages/ram\n"
    "7f00c0000000-7f00c0010000 rw-p 00000000 00:00 0 \n"
    "7f00d0000000-7f00d0001000 rw-p 00000000 00:00 0 \n"
    "7ffd00000000-7ffd00001000 r--p 00000000 00:00 0 [vvar]\n";

/// A process 41 and two nodes, of files.
class Tree {
 public:
  Tree() {
    dir_.write("proc/41/numa_maps", kNumaMaps);
    dir_.write("proc/41/maps", kMaps);
    dir_.write("proc/41/status", "Name:\tqemu\nMems_allowed:\t3\nMems_allowed_list:\t0-1\nx:\t1\n");
    std::filesystem::create_directories(proc() / "41/fd");
    dir_.write("sys/devices/system/node/node0/meminfo",
               "Node 0 MemTotal:  99 kB\nNode 0 MemFree:  40 kB\n");
    dir_.write("sys/devices/system/node/node1/meminfo", "Node 1 MemFree:  8 kB\n");
    dir_.write("sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "3\n");
    dir_.write("sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", "0\n");
    dir_.write("sys/devices/system/node/online", "0-1\n");
  }
  std::filesystem::path proc() const { return dir_.path() / "proc"; }
  void fd(int number, const std::string& target) const {
    dir_.link("proc/41/fd/" + std::to_string(number), target);
  }
  base::Result<host::ProcessMemory> read() const {
    return host::read_memory(proc(), dir_.path() / "sys", 41);
  }

 private:
  ka::tests::TempDir dir_;
};

}  // namespace

TEST_CASE("numa_maps distinguishes the VM's own memory from mapped files") {
  const auto mappings = host::parse_numa_maps(kNumaMaps);
  REQUIRE(mappings);
  REQUIRE(mappings->size() == 9);
  CHECK_FALSE((*mappings)[0].own);
  CHECK((*mappings)[1].bytes == policy::NodeBytes{{0, 4 * kPage}, {1, 6 * kPage}});
  CHECK((*mappings)[3].own);
  CHECK((*mappings)[3].shared);
  CHECK((*mappings)[4].page == kHuge);
  CHECK((*mappings)[4].bytes == policy::NodeBytes{{0, 2 * kHuge}});
  CHECK((*mappings)[5].bound);
  CHECK((*mappings)[6].bound);
  CHECK((*mappings)[8].bytes.empty());
}

TEST_CASE("malformed numa_maps is an error that names the line") {
  for (const std::string text : {"x default N0=1\n", "7f00\n", "\n", "7f00 default N0=1\nzz\n"}) {
    const auto mappings = host::parse_numa_maps(text);
    REQUIRE_FALSE(mappings);
    CHECK(mappings.error().message.starts_with("numa_maps: line "));
  }
  const auto strange =
      host::parse_numa_maps("7f00 default N=1 Nx=2 N0= N99999=1 kernelpagesize_kB=0\n");
  REQUIRE(strange);
  CHECK(strange->front().bytes.empty());
  CHECK(strange->front().page == kPage);
}

TEST_CASE("memory is summed by page size, without bound and open-ended mappings") {
  const Tree tree;
  const auto memory = tree.read();
  REQUIRE(memory);
  const auto& parts = memory->facts.parts;
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].placed == policy::NodeBytes{{0, 4 * kPage}, {1, (6 + 512 + 8) * kPage}});
  CHECK(parts[0].free == policy::NodeBytes{{0, 40 * 1024}, {1, 8 * 1024}});
  CHECK(parts[1].placed == policy::NodeBytes{{0, 2 * kHuge}});
  CHECK(parts[1].free == policy::NodeBytes{{0, 3 * kHuge}, {1, 0}});
  CHECK(memory->facts.bound == policy::NodeBytes{{0, kPage}, {1, 16 * kPage}});
  CHECK(policy::format_list(memory->facts.allowed) == "0-1");
  CHECK(memory->facts.device.empty());
  CHECK(memory->movable.size() == 4);
}

TEST_CASE("passed-through devices are found by open descriptors") {
  for (const std::string device :
       {"/dev/vfio/12", "anon_inode:[vfio-device]", "/dev/vhost-vdpa-0"}) {
    const Tree tree;
    tree.fd(3, "/dev/kvm");
    tree.fd(4, device);
    CHECK(tree.read()->facts.device == device);
  }
}

TEST_CASE("while open descriptors cannot be read, it is not known whether memory can move") {
  const Tree tree;
  const auto fds = tree.proc() / "41/fd";
  std::filesystem::remove(fds);
  std::filesystem::create_symlink(fds, fds);
  const auto memory = tree.read();
  REQUIRE_FALSE(memory);
  CHECK_FALSE(is_gone(memory));
}

TEST_CASE("a process that has ended is gone") {
  const Tree tree;
  std::filesystem::remove_all(tree.proc() / "41");
  const auto memory = tree.read();
  REQUIRE_FALSE(memory);
  CHECK(memory.error().code == base::ErrorCode::kGone);
}

TEST_CASE("the kernel reports where this process's memory lies, and moves it in steps") {
  constexpr std::size_t kSize = 3 << 20;
  void* memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  std::memset(memory, 1, kSize);
  const auto start = reinterpret_cast<std::uint64_t>(memory);
  const Mapping mapping{.start = start,
                        .end = start + kSize,
                        .page = kPage,
                        .own = true,
                        .shared = false,
                        .bound = false,
                        .bytes = {}};
  // There may be one node only: memory that is moved to where it is has arrived.
  host::MemoryMover mover({::getpid(), 0}, {mapping}, {{kPage, 0, 0, kSize}});
  int steps = 0;
  while (!mover.done()) {
    const auto done = mover.step(1 << 20);
    if (!done && done.error().number == ENOSYS) return;  // a kernel without NUMA
    REQUIRE(done);
    ++steps;
  }
  CHECK(steps == 3);
  CHECK(mover.moved() + mover.failed() <= kSize);
  CHECK(mover.moved() > 0);
  ::munmap(memory, kSize);
}

TEST_CASE("memory of a process that has ended cannot be moved") {
  const Mapping mapping{.start = 4096,
                        .end = 8192,
                        .page = kPage,
                        .own = true,
                        .shared = false,
                        .bound = false,
                        .bytes = {}};
  host::MemoryMover mover({0x3fffffff, 0}, {mapping}, {{kPage, 0, 1, kPage}});
  const auto done = mover.step(kPage);
  REQUIRE_FALSE(done);
  if (done.error().number != ENOSYS) CHECK(done.error().code == base::ErrorCode::kGone);
}

TEST_CASE("memory of nodes: free, available without caches, and all of it") {
  const tests::TempDir dir;
  const auto node = [&](const std::string& name) { return "sys/devices/system/node/" + name; };
  dir.write(node("node0/meminfo"),
            "Node 0 MemTotal:       100 kB\nNode 0 MemFree:         40 kB\n"
            "Node 0 Active(file):     5 kB\nNode 0 Inactive(file):   6 kB\n"
            "Node 0 Inactive:        30 kB\nNode 0 SReclaimable:     7 kB\n");
  dir.write(node("node1/meminfo"), "Node 1 MemTotal: 18446744073709551615 kB\n");
  dir.write(node("node1/hugepages/hugepages-2048kB/free_hugepages"), "3\n");
  dir.write(node("node1/hugepages/hugepages-2048kB/nr_hugepages"), "4\n");
  dir.write(node("node-2/meminfo"), "Node 2 MemFree: 1 kB\n");
  CHECK(host::memory_nodes(dir.path() / "sys").empty());
  dir.write(node("has_memory"), "0-1\n");
  CHECK(host::memory_nodes(dir.path() / "sys") == policy::NodeSet{0, 1});
  const auto sys = dir.path() / "sys";
  constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
  CHECK(host::free_memory(sys, 4096) == policy::NodeBytes{{0, 40 * 1024}, {1, 0}});
  CHECK(host::available_memory(sys) == policy::NodeBytes{{0, 58 * 1024}, {1, 0}});
  CHECK(host::total_memory(sys, 4096).at(0) == 100 * 1024);
  CHECK(host::free_memory(sys, kHugePage) == policy::NodeBytes{{0, 0}, {1, 3 * kHugePage}});
  CHECK(host::total_memory(sys, kHugePage) == policy::NodeBytes{{0, 0}, {1, 4 * kHugePage}});
}
