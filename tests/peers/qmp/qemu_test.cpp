// SPDX-License-Identifier: Apache-2.0
// The client and discovery against a real QEMU. Software emulation is enough: the threads and the
// monitor are the same, only KVM's own views are missing.
#include <boost/asio/io_context.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>

#include "tests/catch.hpp"
#include "tests/discovery.hpp"
#include "tests/peers/qmp/qemu_process.hpp"
#include "tests/run_loop.hpp"
#include "vmm/qmp/client.hpp"
#include "vmm/threads.hpp"

using namespace ka;
using namespace std::chrono_literals;
using tests::QemuProcess;

namespace {

/// A client and the last that it told.
struct Watcher {
  boost::asio::io_context io{1};
  base::Clock clock;
  std::vector<vmm::MonitorFacts> facts;
  std::vector<base::Error> failures;
  std::unique_ptr<vmm::Monitor> client;

  explicit Watcher(const std::filesystem::path& socket) {
    auto started = qmp::Client::start(
        io, clock, {.socket = socket},
        {.facts = [this](vmm::MonitorFacts report) { facts.push_back(std::move(report)); },
         .failed = [this](const base::Error& error) { failures.push_back(error); }});
    REQUIRE(started);
    client = std::move(*started);
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher() {
    client.reset();
    io.run_for(20ms);
  }

  template <typename Condition>
  void run_until(Condition condition) {
    tests::run_until(io, condition);
  }
};

std::vector<int> indices(const std::vector<policy::VcpuFacts>& vcpus) {
  std::vector<int> list;
  for (const policy::VcpuFacts& vcpu : vcpus) list.push_back(vcpu.index);
  return list;
}

std::vector<int> indices(const vmm::MonitorFacts& facts) {
  std::vector<int> list;
  for (const auto& vcpu : facts.vcpus) list.push_back(vcpu.facts.index);
  return list;
}

bool skip() {
  if (tests::have_qemu()) return false;
  WARN("skipped: qemu-system-x86_64 is not installed");
  return true;
}

}  // namespace

TEST_CASE("without thread names the monitor identifies vCPUs, also hotplugged ones") {
  if (skip()) return;
  QemuProcess qemu({"-S", "-object", "iothread,id=long_iothread_name"});
  Watcher watcher(qemu.socket());
  watcher.run_until([&] { return watcher.facts.size() == 1; });
  CHECK(vmm::examine({}, qemu.pid(), vmm::Word::kRuntime)->is_vmm);

  tests::Discovery discovery({}, {.vmm = *vmm::identify({}, qemu.pid())});
  CHECK(discovery.observe(nullptr)->vcpus.empty());
  auto found = discovery.observe(&watcher.facts[0]);
  REQUIRE(found);
  CHECK(found->vcpus ==
        std::vector<policy::VcpuFacts>{{.index = 0, .apic_id = 0, .socket = 0, .core = 0},
                                       {.index = 1, .apic_id = 1, .socket = 1, .core = 1}});
  CHECK(found->vcpu_source == "qmp");
  CHECK(found->conflicts.empty());
  CHECK(std::ranges::count(found->threads, "long_iothread_name", &policy::ThreadFacts::name) == 1);

  REQUIRE(qemu.plug_vcpu(3));
  REQUIRE(qemu.plug_vcpu(2));
  watcher.client->refresh();
  watcher.run_until([&] { return watcher.facts.size() == 2; });
  found = discovery.observe(&watcher.facts[1]);
  REQUIRE(found);
  CHECK(indices(found->vcpus) == std::vector{0, 1, 2, 3});
  CHECK(found->vcpus[3] == policy::VcpuFacts{.index = 3, .apic_id = 3, .socket = 3, .core = 3});
  CHECK(std::ranges::count(found->threads, policy::Role::kVcpu, &policy::ThreadFacts::role) == 4);
  CHECK(watcher.failures.empty());
}

TEST_CASE("thread names and the monitor agree, and a plugged vCPU is found by its name") {
  if (skip()) return;
  QemuProcess qemu({"-S", "-name", "t,debug-threads=on", "-object", "iothread,id=io1"});
  Watcher watcher(qemu.socket());
  watcher.run_until([&] { return watcher.facts.size() == 1; });
  tests::Discovery discovery({}, {.vmm = *vmm::identify({}, qemu.pid())});
  const auto by_name = discovery.observe(nullptr);
  const auto by_both = discovery.observe(&watcher.facts[0]);
  REQUIRE(by_both);
  CHECK(by_both->conflicts.empty());
  CHECK(by_name->threads == by_both->threads);
  CHECK(by_name->vcpu_source == "thread-names");
  CHECK(std::ranges::count(by_name->threads, policy::Role::kIothread, &policy::ThreadFacts::role) ==
        1);

  REQUIRE(qemu.plug_vcpu(3));
  // The thread names itself a moment after it was born.
  watcher.run_until(
      [&] { return indices(discovery.observe(nullptr)->vcpus) == std::vector{0, 1, 3}; });
}

TEST_CASE("QEMU's event reports an unplugged vCPU") {
  if (skip()) return;
  const tests::TempDir dir;
  dir.write("disk", tests::ejecting_guest());
  QemuProcess qemu({"-S", "-drive", "format=raw,file=" + (dir.path() / "disk").string(), "-name",
                    "t,debug-threads=on"});
  Watcher watcher(qemu.socket());
  // Before it runs: SeaBIOS waits forever for CPUs that come while it counts them.
  REQUIRE(qemu.plug_vcpu(3));
  REQUIRE(qemu.plug_vcpu(2));
  REQUIRE(qemu.execute("cont"));
  watcher.client->refresh();
  watcher.run_until(
      [&] { return !watcher.facts.empty() && watcher.facts.back().vcpus.size() == 4; });
  // Refused until the guest has booted.
  watcher.run_until([&] { return qemu.execute("device_del", {{"id", "cpu2"}}).has_value(); });
  watcher.run_until([&] { return watcher.facts.back().vcpus.size() == 3; });
  CHECK(indices(watcher.facts.back()) == std::vector{0, 1, 3});
  const auto found =
      tests::discover({}, {.vmm = *vmm::identify({}, qemu.pid())}, &watcher.facts.back());
  REQUIRE(found);
  CHECK(indices(found->vcpus) == std::vector{0, 1, 3});
  CHECK(found->conflicts.empty());
}

TEST_CASE(
    "QEMU serves one client a socket: the second is reported so, and served when the first left") {
  if (skip()) return;
  QemuProcess qemu({"-S"});
  auto first = std::make_unique<Watcher>(qemu.socket());
  first->run_until([&] { return !first->facts.empty(); });
  Watcher second(qemu.socket());
  second.run_until([&] { return !second.failures.empty(); });
  CHECK(second.failures[0].message.find("no greeting") != std::string::npos);
  first.reset();
  second.run_until([&] { return !second.facts.empty(); });
}

TEST_CASE("a QEMU that exits is gone for discovery and a failure for the client") {
  if (skip()) return;
  auto qemu = std::make_unique<QemuProcess>(std::vector<std::string>{"-S"});
  Watcher watcher(qemu->socket());
  watcher.run_until([&] { return !watcher.facts.empty(); });
  tests::Discovery discovery({}, {.vmm = *vmm::identify({}, qemu->pid())});
  REQUIRE(discovery.observe(nullptr));
  qemu.reset();
  CHECK(discovery.observe(nullptr).error().code == base::ErrorCode::kGone);
  watcher.run_until([&] { return !watcher.failures.empty(); });
}
