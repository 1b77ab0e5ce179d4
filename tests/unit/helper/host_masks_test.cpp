// SPDX-License-Identifier: Apache-2.0
// Where the masks of a host are found, and how they are written.
#include "affinity/helper/host_masks.hpp"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <set>

#include "affinity/helper/keeper.hpp"
#include "affinity/helper/kernel_threads.hpp"
#include "affinity/helper/mask_records.hpp"
#include "affinity/helper/record_file.hpp"
#include "affinity/host/affinity_calls.hpp"
#include "base/files.hpp"
#include "policy/facts/quiet.hpp"
#include "tests/catch.hpp"
#include "tests/flipped_bits.hpp"
#include "tests/scripted_server.hpp"
#include "tests/temp_dir.hpp"
#include "tests/test_clock.hpp"
#include "tests/text.hpp"
#include "tests/text_log.hpp"

using namespace ka;
using namespace ka::helper;
using base::ErrorCode;
using policy::CpuSet;

namespace {

struct Trees {
  tests::TempDir dir;
  tests::TestClock clock;
  host::KernelAffinityCalls calls;
  Roots roots{dir.path() / "proc", dir.path() / "sys", dir.path() / "no-systemd",
              dir.path() / "irqbalance"};
  AllHostMasks all = all_host_masks(roots, clock, std::make_unique<KernelThreads>(roots, calls));

  const HostMasks& of(std::string_view kind) const {
    const auto found = std::ranges::find(all, kind, [](const auto& one) { return one->kind(); });
    REQUIRE(found != all.end());
    return **found;
  }
  std::map<std::string, CpuSet> read(std::string_view kind) const {
    std::map<std::string, CpuSet> cpus;
    const auto masks = of(kind).read();
    REQUIRE(masks);
    for (const HostMask& mask : *masks) cpus[mask.title] = mask.cpus;
    return cpus;
  }
  std::string text(const std::string& file) const { return *base::read_file(dir.path() / file); }
  void interrupt(const std::string& number, const std::string& actions, const std::string& cpus) {
    dir.write("sys/kernel/irq/" + number + "/actions", actions + "\n");
    dir.write("proc/irq/" + number + "/smp_affinity_list", cpus + "\n");
  }
  void thread(int pid, const std::string& name, int parent, unsigned flags) {
    const std::string process = "proc/" + std::to_string(pid);
    const std::string stat = std::to_string(pid) + " (" + name + ") S " + std::to_string(parent) +
                             " 0 0 0 -1 " + std::to_string(flags) + " 0 0 0 0 0 0 0 0 20 0 1 0 " +
                             std::to_string(pid + 1000) + " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0\n";
    dir.write(process + "/stat", stat);
    dir.write(process + "/task/" + std::to_string(pid) + "/stat", stat);
    dir.write(process + "/status",
              "Name:\t" + name + "\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n");
  }
};

using Cpus = std::map<std::string, CpuSet>;
const CpuSet kAll = CpuSet::range(0, 7);

}  // namespace

TEST_CASE("the kinds are those that the daemon knows, in its order") {
  const Trees trees;
  CHECK(std::ranges::equal(trees.all, policy::kQuietKinds, {},
                           [](const auto& masks) { return masks->kind(); }));
}

TEST_CASE("a kernel without a mask for workqueues has none") {
  CHECK(Trees().read("workqueue").empty());
}

TEST_CASE("interrupts: those with a handler, but for VFIO's") {
  Trees trees;
  trees.interrupt("24", "virtio0-input.0", "0-7");
  trees.interrupt("25", "", "0-7");
  trees.interrupt("26", "vfio-msix[0](0000:01:00.0)", "0-7");
  trees.dir.write("proc/irq/default_smp_affinity", "ff\n");
  CHECK(trees.read("interrupt") == Cpus{{"IRQ 24 virtio0-input.0", kAll}});
  CHECK(trees.read("new-interrupts") == Cpus{{"interrupts to come", kAll}});

  const auto mask = trees.of("interrupt").read()->front();
  REQUIRE(trees.of("interrupt").write(mask, {0, 1}));
  CHECK(trees.text("proc/irq/24/smp_affinity_list") == "0-1\n");
  REQUIRE(trees.of("new-interrupts").write({"default", "", {}, {}}, {0, 1}));
  CHECK(trees.text("proc/irq/default_smp_affinity") == "3\n");
}

TEST_CASE("an interrupt whose number another handler has now is not written") {
  Trees trees;
  trees.interrupt("24", "eth0", "0-7");
  const auto mask = trees.of("interrupt").read()->front();
  trees.interrupt("24", "nvme0q1", "0-7");
  CHECK(trees.of("interrupt").write(mask, {0}).error().code == ErrorCode::kGone);
  CHECK(trees.text("proc/irq/24/smp_affinity_list") == "0-7\n");
}

TEST_CASE("workqueues: the mask of the unbound ones") {
  Trees trees;
  trees.dir.write("sys/devices/virtual/workqueue/cpumask", "ff\n");
  CHECK(trees.read("workqueue") == Cpus{{"unbound workqueues", kAll}});
  REQUIRE(trees.of("workqueue").write({}, {0, 33}));
  CHECK(trees.text("sys/devices/virtual/workqueue/cpumask") == "2,00000001\n");
}

TEST_CASE("queues: those that have a mask") {
  Trees trees;
  const std::string queues = "sys/class/net/eth0/queues/";
  trees.dir.write(queues + "rx-0/rps_cpus", "ff\n");
  trees.dir.write(queues + "rx-1/rps_cpus", "00\n");
  trees.dir.write(queues + "tx-0/xps_cpus", "f0\n");
  trees.dir.write("sys/class/net/bonding_masters", "");
  CHECK(trees.read("receive-queue") == Cpus{{"eth0 rx-0", kAll}});
  CHECK(trees.read("transmit-queue") == Cpus{{"eth0 tx-0", {4, 5, 6, 7}}});
  for (const auto& kind : trees.all) {
    const bool is_of_queues = kind->kind().ends_with("-queue");
    CHECK(kind->out_of_reach() == (is_of_queues ? "in network namespaces of pods" : ""));
  }
  const auto mask = trees.of("receive-queue").read()->front();
  REQUIRE(trees.of("receive-queue").write(mask, {0, 1}));
  CHECK(trees.text(queues + "rx-0/rps_cpus") == "3\n");
}

TEST_CASE("kernel threads: children of kthreadd, but for those of VMs") {
  constexpr unsigned kNoSetAffinity = 0x04000000;
  Trees trees;
  trees.thread(1, "systemd", 0, 0);
  trees.thread(2, "kthreadd", 0, 0);
  trees.thread(3, "khugepaged", 2, 0);
  trees.thread(4, "kworker/0:0", 2, kNoSetAffinity);
  trees.thread(5, "vhost-77", 2, 0);
  trees.thread(6, "irq/24-eth0", 2, 0);
  std::map<std::string, std::string> fixed;
  const auto found = trees.of("kernel-thread").read();
  REQUIRE(found);
  for (const HostMask& mask : *found) fixed[mask.title] = mask.fixed;
  CHECK(fixed.size() == 4);
  CHECK(fixed["kthreadd"].empty());
  CHECK(fixed["khugepaged"].empty());
  CHECK(fixed["kworker/0:0"] == "bound by the kernel");
  CHECK(fixed["irq/24-eth0"] == "follows its interrupt when that next comes");
}

TEST_CASE("a thread that has another's number is not written") {
  Trees trees;
  trees.thread(3, "khugepaged", 2, 0);
  HostMask mask = trees.of("kernel-thread").read()->front();
  mask.name = "3 7";
  CHECK(trees.of("kernel-thread").write(mask, {0}).error().code == ErrorCode::kGone);
}

TEST_CASE("units: those that systemd has, where cgroups are of version 2") {
  Trees trees;
  trees.dir.write("sys/devices/system/cpu/possible", "0-7\n");
  const auto mounted = [&](const std::string& type) {
    trees.dir.write("proc/self/mountinfo", "30 1 0:26 / " + (trees.dir.path() / "cg").string() +
                                               " rw - " + type + " cgroup rw\n");
  };
  mounted("cgroup2");
  trees.dir.write("cg/cgroup.controllers", "cpuset cpu\n");
  CHECK(trees.of("unit").read().error().code == ErrorCode::kUnavailable);
  trees.dir.write("cg/system.slice/cpuset.cpus", "\n");
  trees.dir.write("cg/init.scope/cpuset.cpus", "0-3\n");
  CHECK(trees.read("unit") == Cpus{{"system.slice", kAll}, {"init.scope", {0, 1, 2, 3}}});
  CHECK(trees.of("unit").write({"init.scope", "init.scope", {}, {}}, {0}).error().code ==
        ErrorCode::kUnavailable);
}

TEST_CASE("no mask of the kernel waits for systemd or for irqbalance") {
  Trees trees;
  trees.dir.write("sys/devices/system/cpu/possible", "0-7\n");
  trees.dir.write("proc/self/mountinfo", "30 1 0:26 / " + (trees.dir.path() / "cg").string() +
                                             " rw - cgroup2 cgroup rw\n");
  trees.dir.write("cg/cgroup.controllers", "cpuset cpu\n");
  trees.dir.write("cg/system.slice/cpuset.cpus", "\n");
  trees.interrupt("24", "eth0", "0-7");
  trees.dir.write("proc/irq/default_smp_affinity", "ff\n");
  trees.dir.write("sys/devices/virtual/workqueue/cpumask", "ff\n");
  trees.dir.write("sys/class/net/eth0/queues/rx-0/rps_cpus", "ff\n");
  trees.dir.write("sys/class/net/eth0/queues/tx-0/xps_cpus", "ff\n");
  std::filesystem::create_directory(trees.roots.irqbalance);
  std::set<std::string> when_called;
  std::mutex mutex;
  const auto note_masks = [&](int, const std::string& program) {
    const std::scoped_lock lock(mutex);
    when_called.insert(program + ": " + trees.text("proc/irq/24/smp_affinity_list") +
                       trees.text("proc/irq/default_smp_affinity") +
                       trees.text("sys/devices/virtual/workqueue/cpumask") +
                       trees.text("sys/class/net/eth0/queues/rx-0/rps_cpus") +
                       trees.text("sys/class/net/eth0/queues/tx-0/xps_cpus"));
  };
  {
    const std::string reply = "BANNED 00000000";
    const tests::ScriptedServer irqbalance(trees.roots.irqbalance / "irqbalance7.sock",
                                           std::vector(3, reply),
                                           [&](int peer, const std::string& text) {
                                             char request[256];
                                             (void)::recv(peer, request, sizeof request, 0);
                                             note_masks(peer, "irqbalance");
                                             ::send(peer, text.data(), text.size(), MSG_NOSIGNAL);
                                           });
    const tests::ScriptedServer systemd(trees.roots.systemd, {"systemd"}, note_masks);
    std::string lines;
    const log::Log logger = tests::text_log(log::Level::kInfo, lines);
    Keeper keeper(std::move(trees.all), {trees.dir.path(), "boot"}, logger);
    keeper.adopt();
    keeper.keep_off({2, 3}, kAll - CpuSet{2, 3});
    CHECK(keeper.is_unfinished());
  }
  const std::string narrowed = "0-1,4-7\nf3\nf3\nf3\nf3\n";
  CHECK(when_called == std::set{"irqbalance: " + narrowed, "systemd: " + narrowed});
}

TEST_CASE("a record with any bit flipped is damaged, not of another boot and not believed") {
  const std::string boot = "5f0f1c2e-0000-4000-8000-000000000000";
  const MaskRecords records{{2, 3}, {{{"unit", "system.slice"}, {{0}, {}}}}, {}, {7}, {}};
  const std::string good = to_text(records, boot);
  REQUIRE(from_text<MaskRecords>(good, boot));
  tests::for_each_flipped_bit(good, [&](const std::string& text) {
    const auto read = from_text<MaskRecords>(text, boot);
    return !read && read.error().code == ErrorCode::kInvalid;
  });
  CHECK(from_text<MaskRecords>(tests::without_checksum(good), boot) == records);
}

TEST_CASE("records are read as they were written, and nothing else is") {
  const MaskRecords records{
      {2, 3},
      {{{"interrupt", "24 eth0"}, {kAll, {{0, 1}, {0}}}}, {{"unit", "system.slice"}, {{0}, {}}}},
      {{"unit", "system.slice"}},
      {7},
      {{"interrupt", {"24 eth0", "25 nvme0q1"}}}};
  CHECK(from_text<MaskRecords>(to_text(records, "boot"), "boot") == records);
  const std::string other = "5f0f1c2e-0000-4000-8000-000000000000";
  CHECK(from_text<MaskRecords>(to_text(records, other), "boot").error().code == ErrorCode::kGone);
  for (const char* damaged : {"", "boos", "5f0f1c2e-0000-4000-8000-00000000000",
                              "~f0f1c2e-0000-4000-8000-000000000000"}) {
    CHECK(from_text<MaskRecords>(to_text(records, damaged), "boot").error().code ==
          ErrorCode::kInvalid);
  }
  for (
      const char* text :
      {"", "{}", "[]", R"({"version":2,"boot_id":"boot","quiet":"","masks":[]})",
       R"({"version":1,"boot_id":"boot","quiet":"x","masks":[]})",
       R"({"version":1,"boot_id":"boot","quiet":"","masks":[{}]})",
       R"({"version":1,"boot_id":"boot","quiet":"","masks":[{"kind":"a","name":"b","theirs":"1","ours":["?"],"begun":true}]})"}) {
    CAPTURE(text);
    CHECK(from_text<MaskRecords>(text, "boot").error().code == ErrorCode::kInvalid);
  }
}

TEST_CASE(
    "kernel threads are read again by the kernel's own word, the file where that has changed") {
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  int cpu = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(cpu), &before)) ++cpu;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(cpu), &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  const int tid = ::gettid();
  const std::string name = std::to_string(tid) + " 1";
  Trees trees;
  trees.dir.write("sys/devices/system/cpu/online", "0-1022\n");
  trees.dir.write("sys/devices/system/cpu/possible", "0-1023\n");
  trees.thread(tid, "kswapd0", 2, 0);
  const auto again = [&](const HostMask& known) {
    const auto masks = trees.of("kernel-thread").read_again({known});
    REQUIRE(masks);
    return masks->empty() ? CpuSet() : masks->front().cpus;
  };

  CHECK(again({name, "kswapd0", {cpu}, {}}) == CpuSet{cpu});
  CHECK(again({name, "kswapd0", {cpu, 1023}, {}}) == CpuSet{cpu, 1023});
  CHECK(again({name, "kswapd0", {cpu, cpu + 1}, {}}) == kAll);
  CHECK(again({name, "kswapd0", {cpu}, "bound by the kernel"}).empty());
  CHECK(again({"99999999 1", "kswapd0", {cpu}, {}}).empty());
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
}
