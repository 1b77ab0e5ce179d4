// SPDX-License-Identifier: Apache-2.0
// systemd, played by the other end of its own library: what it is asked, and what its answers mean.
#include "affinity/host/systemd.hpp"

#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <thread>

#include "affinity/host/cfs_quota.hpp"
#include "affinity/host/cpuset_writer.hpp"
#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/unix_socket.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/test_clock.hpp"

using namespace ka;
using base::ErrorCode;
using policy::CpuSet;

namespace {

/// Answers one call of SetUnitProperties.
class Systemd {
 public:
  enum class Answer { kDone, kNoSuchUnit, kNone };

  explicit Systemd(Answer answer) : answer_(answer) {
    listener_ = base::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = base::unix_address(path());
    REQUIRE(address);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&*address),
                   sizeof(*address)) == 0);
    REQUIRE(::listen(listener_.get(), 1) == 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~Systemd() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  std::string path() const { return dir_.path() / "private"; }
  /// What was asked for, once a call has returned.
  std::string called;
  std::function<void()> on_call;  ///< before the answer

 private:
  void serve() {
    const int peer = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (peer < 0) return;
    sd_bus* bus = nullptr;
    sd_id128_t id;
    sd_id128_randomize(&id);
    sd_bus_new(&bus);
    sd_bus_set_fd(bus, peer, peer);
    sd_bus_set_server(bus, 1, id);
    sd_bus_add_filter(
        bus, nullptr,
        [](sd_bus_message* message, void* self, sd_bus_error*) {
          return static_cast<Systemd*>(self)->handle(message);
        },
        this);
    sd_bus_start(bus);
    while (sd_bus_process(bus, nullptr) >= 0 && sd_bus_wait(bus, UINT64_MAX) >= 0) {
    }
    sd_bus_close_unref(bus);
  }

  int handle(sd_bus_message* message) {
    const char *unit = nullptr, *property = nullptr;
    int runtime = 0;
    const void* bytes = nullptr;
    std::size_t size = 0;
    std::uint64_t number = 0;
    if (sd_bus_message_is_method_call(message, "org.freedesktop.systemd1.Manager",
                                      "SetUnitProperties") == 0) {
      return 0;
    }
    sd_bus_message_read(message, "sb", &unit, &runtime);
    sd_bus_message_enter_container(message, 'a', "(sv)");
    sd_bus_message_enter_container(message, 'r', "sv");
    sd_bus_message_read(message, "s", &property);
    called = std::string(unit) + (runtime != 0 ? " runtime " : " ") + property;
    if (std::string(property) == "IOWeight" || std::string(property) == "CPUQuotaPerSecUSec") {
      sd_bus_message_read(message, "v", "t", &number);
      called += ' ' + std::to_string(number);
    } else {
      sd_bus_message_enter_container(message, 'v', "ay");
      sd_bus_message_read_array(message, 'y', &bytes, &size);
    }
    for (std::size_t i = 0; i < size; ++i) {
      called += ' ' + std::to_string(static_cast<const unsigned char*>(bytes)[i]);
    }
    if (on_call) on_call();
    if (answer_ == Answer::kDone) sd_bus_reply_method_return(message, "");
    if (answer_ == Answer::kNoSuchUnit) {
      sd_bus_reply_method_errorf(message, "org.freedesktop.systemd1.NoSuchUnit", "Unit not loaded");
    }
    return 1;
  }

  tests::TempDir dir_;
  Answer answer_;
  base::Fd listener_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a set is one bit per CPU, the lowest first") {
  using Bytes = std::vector<std::uint8_t>;
  CHECK(host::to_mask(CpuSet{}).empty());
  CHECK(host::to_mask(CpuSet{0, 1, 7}) == Bytes{0x83});
  CHECK(host::to_mask(CpuSet{8, 17}) == Bytes{0, 1, 2});
}

TEST_CASE("systemd sets a unit's CPUs") {
  Systemd systemd(Systemd::Answer::kDone);
  REQUIRE(host::set_allowed_cpus(systemd.path(), "cri-containerd-1.scope", {0, 9}));
  CHECK(systemd.called == "cri-containerd-1.scope runtime AllowedCPUs 1 2");
}

TEST_CASE("systemd sets a unit's memory nodes") {
  Systemd systemd(Systemd::Answer::kDone);
  REQUIRE(host::set_allowed_nodes(systemd.path(), "cri-containerd-1.scope", {1}));
  CHECK(systemd.called == "cri-containerd-1.scope runtime AllowedMemoryNodes 2");
}

TEST_CASE("systemd sets a unit's I/O weight, or takes it away") {
  Systemd systemd(Systemd::Answer::kDone);
  REQUIRE(host::set_io_weight(systemd.path(), "x.scope", 300));
  CHECK(systemd.called == "x.scope runtime IOWeight 300");
  Systemd again(Systemd::Answer::kDone);
  REQUIRE(host::set_io_weight(again.path(), "x.scope", std::nullopt));
  CHECK(again.called == "x.scope runtime IOWeight 18446744073709551615");
}

TEST_CASE(
    "a unit's CFS quota is taken away and given back, through systemd and to the microsecond") {
  const tests::TempDir dir;
  const auto pod = dir.path() / "kubepods-pod1.slice";
  dir.write("kubepods-pod1.slice/cpu.max", "150001 100000\n");
  const tests::TestClock clock;
  Systemd systemd(Systemd::Answer::kDone);
  REQUIRE(host::write_cpu_max(clock, systemd.path(), pod, "max"));
  CHECK(systemd.called == "kubepods-pod1.slice runtime CPUQuotaPerSecUSec 18446744073709551615");
  CHECK(*base::read_file(pod / "cpu.max") == "max\n");
  Systemd back(Systemd::Answer::kDone);
  back.on_call = [&dir] { dir.write("kubepods-pod1.slice/cpu.max", "151000 100000\n"); };
  REQUIRE(host::write_cpu_max(clock, back.path(), pod, "150001 100000"));
  CHECK(back.called == "kubepods-pod1.slice runtime CPUQuotaPerSecUSec 1500010");
  CHECK(*base::read_file(pod / "cpu.max") == "150001 100000\n");
}

TEST_CASE("a cgroup that is no unit has its quota in the kernel's file alone") {
  const tests::TempDir dir;
  dir.write("kubepods/pod1/cpu.max", "150000 100000\n");
  dir.write("x.slice/cpu.max", "150000 100000\n");
  const tests::TestClock clock;
  REQUIRE(host::write_cpu_max(clock, dir.path() / "none", dir.path() / "kubepods/pod1", "max"));
  CHECK(*base::read_file(dir.path() / "kubepods/pod1/cpu.max") == "max\n");
  const Systemd systemd(Systemd::Answer::kNoSuchUnit);
  REQUIRE(host::write_cpu_max(clock, systemd.path(), dir.path() / "x.slice", "max"));
  CHECK(*base::read_file(dir.path() / "x.slice/cpu.max") == "max\n");
  CHECK(host::write_cpu_max(clock, dir.path() / "none", dir.path() / "gone", "max").error().code ==
        ErrorCode::kGone);
}

TEST_CASE("a unit gets the io controller from systemd where the kernel has it") {
  const tests::TempDir dir;
  dir.write("fs/cgroup.controllers", "cpuset io\n");
  dir.write("fs/x.scope/cgroup.controllers", "cpuset\n");
  const std::filesystem::path unit = dir.path() / "fs/x.scope";
  const tests::TestClock clock;
  Systemd systemd(Systemd::Answer::kDone);
  systemd.on_call = [&dir] { dir.write("fs/x.scope/io.weight", "default 300\n"); };
  host::KernelCpusetWriter writer(clock, systemd.path());
  REQUIRE(writer.write_io_weight(unit, 300));
  CHECK(systemd.called == "x.scope runtime IOWeight 300");
  Systemd back(Systemd::Answer::kDone);
  back.on_call = [&dir] { dir.write("fs/x.scope/io.weight", "default 100\n"); };
  REQUIRE(host::KernelCpusetWriter(clock, back.path()).write_io_weight(unit, 100));
  CHECK(back.called.ends_with("IOWeight 18446744073709551615"));
}

TEST_CASE("systemd is not waited for where no weight can come") {
  const tests::TempDir dir;
  dir.write("fs/cgroup.controllers", "cpuset\n");
  dir.write("fs/x.scope/cgroup.controllers", "cpuset\n");
  const Systemd systemd(Systemd::Answer::kDone);
  const tests::TestClock clock;
  const auto began = clock.now();
  host::KernelCpusetWriter writer(clock, systemd.path());
  CHECK(writer.write_io_weight(dir.path() / "fs/x.scope", 300).error().code ==
        ErrorCode::kUnavailable);
  CHECK(clock.now() == began);
  dir.write("fs/kata_1/io.weight", "default 100\n");
  REQUIRE(writer.write_io_weight(dir.path() / "fs/kata_1", 300));
  CHECK(*base::read_file(dir.path() / "fs/kata_1/io.weight") == "300\n");
}

TEST_CASE("an unknown unit is distinguished from a missing systemd") {
  const Systemd systemd(Systemd::Answer::kNoSuchUnit);
  CHECK(host::set_allowed_cpus(systemd.path(), "x.scope", {0}).error().code ==
        ErrorCode::kNotFound);
  CHECK(host::set_allowed_cpus("/nonexistent", "x.scope", {0}).error().code ==
        ErrorCode::kUnavailable);
}

TEST_CASE("a systemd that does not respond times out, and may be asked again") {
  const Systemd systemd(Systemd::Answer::kNone);
  CHECK(host::set_allowed_cpus(systemd.path(), "x.scope", {0}).error().code ==
        ErrorCode::kTransient);
}

TEST_CASE("a cgroup that is not a systemd unit is written directly") {
  const tests::TempDir dir;
  dir.write("kata_1/cpuset.cpus", "");
  dir.write("kata_1/cpuset.mems", "");
  dir.write("x.scope/cpuset.cpus", "");
  const tests::TestClock clock;
  host::KernelCpusetWriter alone(clock, dir.path() / "private");
  REQUIRE(alone.write(dir.path() / "kata_1", {2, 3}));
  CHECK(*base::read_file(dir.path() / "kata_1/cpuset.cpus") == "2-3\n");
  REQUIRE(alone.write_mems(dir.path() / "kata_1", {1}));
  CHECK(*base::read_file(dir.path() / "kata_1/cpuset.mems") == "1\n");
  REQUIRE(alone.write(dir.path() / "x.scope", {}));
  CHECK(*base::read_file(dir.path() / "x.scope/cpuset.cpus") == "\n");

  const Systemd systemd(Systemd::Answer::kNoSuchUnit);
  host::KernelCpusetWriter writer(clock, systemd.path());
  REQUIRE(writer.write(dir.path() / "x.scope", {1}));
  CHECK(base::read_file(dir.path() / "x.scope/cpuset.cpus")->starts_with("1"));
}

TEST_CASE("a write that systemd accepted and did not make is not a success") {
  const tests::TempDir dir;
  dir.write("x.scope/cpuset.cpus", "0\n");
  const Systemd systemd(Systemd::Answer::kDone);
  const tests::TestClock clock;
  const auto began = clock.now();
  host::KernelCpusetWriter writer(clock, systemd.path());
  CHECK(writer.write(dir.path() / "x.scope", {1}).error().code == ErrorCode::kTransient);
  CHECK(clock.now() - began == std::chrono::milliseconds(100));
}
