// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/host/kata_session.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "guest-agent/host/boot.hpp"
#include "guest-agent/host/kernel_image.hpp"
#include "policy/plan/guest_numbers.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/unit/guest-agent/kata_peer.hpp"

using namespace ka;
using guest::KataSession;
using guest::Opening;
using policy::GuestProblem;
using Updates = std::vector<std::pair<std::string, std::string>>;

namespace {

/// Both ends, and what goes between them.
struct Scene {
  explicit Scene(Opening opening = Opening::kNone) : session(opening, 1024) {}

  /// Carries bytes until both ends are silent.
  bool deliver(std::string to_peer) {
    while (!to_peer.empty()) {
      std::string out;
      if (!session.receive(peer.receive(to_peer), answers, out)) return false;
      to_peer = std::move(out);
    }
    return true;
  }
  bool update(const std::string& container, const policy::GuestCpuSet& cpus) {
    std::string out;
    session.update(container, cpus, out);
    return deliver(std::move(out));
  }

  tests::KataPeer peer;
  KataSession session;
  std::vector<guest::KataAnswer> answers;
};

std::vector<policy::VcpuFacts> vcpus(const std::vector<int>& indices) {
  std::vector<policy::VcpuFacts> facts;
  for (const int index : indices) facts.push_back({.index = index, .apic_id = 2 * index});
  return facts;
}

}  // namespace

TEST_CASE("kata-agent gets containers' CPUs one by one, in its own messages") {
  Scene scene;
  std::string out = scene.session.start();
  scene.session.update("c1", {3}, out);
  scene.session.update("c2", {0, 1, 2}, out);
  scene.session.update("c2", {0, 1}, out);  // only the last word counts
  REQUIRE(scene.deliver(out));
  CHECK(scene.peer.updates == Updates{{"c1", "3"}, {"c2", "0-1"}});
  CHECK(scene.answers.size() == 2);
  CHECK((scene.session.ready() && !scene.session.is_owed()));
  CHECK((scene.session.version() == "4.1.0" && scene.session.is_init()));
}

TEST_CASE("a container unknown to kata-agent is distinguished from a rejected one") {
  Scene scene;
  REQUIRE(scene.deliver(scene.session.start()));
  scene.peer.refusals = {{"absent", ttrpc::Code::kInvalidArgument},
                         {"broken", ttrpc::Code::kInternal}};
  REQUIRE(scene.update("absent", {1}));
  REQUIRE(scene.update("broken", {1}));
  REQUIRE(scene.answers.size() == 2);
  CHECK(scene.answers[0].problem == GuestProblem::kNotFound);
  CHECK(scene.answers[1].problem == GuestProblem::kRefused);
}

TEST_CASE("a policy that forbids the call ends the session for good") {
  Scene scene;
  REQUIRE(scene.deliver(scene.session.start()));
  scene.peer.refusals = {{"c1", ttrpc::Code::kPermissionDenied}};
  CHECK_FALSE(scene.update("c1", {1}));
  CHECK(scene.session.is_forbidden());
  CHECK(scene.session.failure().find("policy") != std::string::npos);
}

TEST_CASE("a hybrid vsock is opened first") {
  Scene scene(Opening::kConnect);
  CHECK(scene.session.start() == "CONNECT 1024\n");
  std::string out;
  REQUIRE(scene.session.receive("OK 10737", scene.answers, out));
  CHECK(out.empty());
  REQUIRE(scene.session.receive("41824\n", scene.answers, out));
  CHECK(scene.deliver(out));
  CHECK(scene.session.ready());
  KataSession refused(Opening::kConnect, 1024);
  CHECK_FALSE(refused.receive("\n", scene.answers, out));
}

TEST_CASE("whatever a guest sends as kata-agent ends only its own connection") {
  const auto after_start = [](const std::string& bytes) {
    KataSession session(Opening::kNone, 1024);
    static_cast<void>(session.start());
    std::vector<guest::KataAnswer> answers;
    std::string out;
    return session.receive(bytes, answers, out) ? std::string() : session.failure();
  };
  const auto answer = [](std::uint32_t stream, std::string_view payload) {
    return ttrpc::write_answer(stream,
                               {.code = ttrpc::Code::kOk, .message = {}, .payload = payload});
  };
  CHECK(after_start(answer(7, "")).find("unsolicited response") != std::string::npos);
  CHECK(after_start(answer(1, "") + answer(1, "")).find("unsolicited response") !=
        std::string::npos);
  CHECK(after_start(ttrpc::encode(1, ttrpc::kRequest, 0, "")).find("malformed response") !=
        std::string::npos);
  CHECK(after_start(answer(1,
                           "\x12\x05"
                           "abc"))
            .find("cannot parse") != std::string::npos);
  CHECK(after_start(std::string("\xff\xff\xff\xff\0\0\0\1\2\0", 10)).find("exceeds the limit") !=
        std::string::npos);
  CHECK(after_start(answer(1, "").substr(0, 5)).empty());  // the rest may come
}

TEST_CASE("kata-agent is asked for the number of online CPUs between updates") {
  Scene scene;
  std::string out = scene.session.start();
  scene.peer.online = 3;
  REQUIRE(scene.deliver(out));
  out.clear();
  scene.session.request_online(out);
  scene.session.update("a", {1}, out);
  CHECK(scene.session.awaits_online());
  REQUIRE(scene.deliver(out));
  CHECK_FALSE(scene.session.awaits_online());
  CHECK(scene.session.most_online() == 3);
  CHECK(scene.answers.size() == 1);

  SECTION("a rejected query gives no number, and updates continue") {
    scene.peer.online = 0;
    out.clear();
    scene.session.request_online(out);
    REQUIRE(scene.deliver(out));
    CHECK(scene.session.failure().empty());
    CHECK(scene.session.most_online() == 3);
  }
}

namespace {

using policy::plan::Numbering;

/// What is known of a VM after it was seen with each of these vCPUs.
policy::plan::PlugHistory watched(const policy::plan::BootFacts& boot,
                                  const std::vector<std::vector<int>>& readings, bool counted) {
  policy::plan::PlugHistory history;
  for (const auto& reading : readings) {
    policy::plan::record_vcpus(history, vcpus(reading), boot);
    history.complete = counted;
  }
  return history;
}

std::vector<int> numbers_of(const policy::plan::GuestNumbers& numbers) {
  std::vector<int> list;
  for (const auto& cpu : numbers.cpus) list.push_back(cpu.number);
  return list;
}

std::string widest(const policy::plan::GuestNumbers& numbers) {
  return policy::format_list(numbers.widest);
}

}  // namespace

TEST_CASE("vCPU numbers are certain for those present at boot, and with later kernels") {
  const policy::plan::BootFacts at_boot{.cold_vcpus = 2};
  const auto of = [](const std::vector<int>& indices, const policy::plan::BootFacts& boot) {
    return policy::plan::guest_numbers(vcpus(indices), boot, {});
  };
  const auto cold = of({1, 0}, at_boot);
  REQUIRE(cold.certain);
  CHECK((cold.cpus[1].number == 1 && cold.cpus[1].hardware_id == 2 && cold.cpus[1].online));
  CHECK_FALSE(of({0, 1, 3}, at_boot).certain);  // one was plugged
  CHECK_FALSE(of({0, 3}, at_boot).certain);     // and one unplugged
  CHECK_FALSE(of({0, 1}, {}).certain);
  CHECK_FALSE(of({}, at_boot).certain);
  CHECK(of({0, 1}, {.plugs_none = true}).certain);
  const auto later = of({0, 3}, {.numbering = Numbering::kByApicId});
  REQUIRE(later.certain);
  CHECK(numbers_of(later) == std::vector{0, 3});
  CHECK(widest(later) == "0,3");
  const auto in_order = of({0, 1, 2}, {.plugs_in_order = true});
  REQUIRE(in_order.certain);
  CHECK(numbers_of(in_order) == std::vector{0, 1, 2});
  CHECK_FALSE(policy::plan::guest_numbers({{.index = 0}}, at_boot, {}).certain);  // no APIC id
}

TEST_CASE("an older kernel's numbers follow from the observed plug order") {
  const policy::plan::BootFacts boot{.cold_vcpus = 1, .numbering = Numbering::kByPlugging};
  const auto of = [&boot](const std::vector<int>& now, const policy::plan::PlugHistory& history) {
    return policy::plan::guest_numbers(vcpus(now), boot, history);
  };
  const auto one_by_one = of({0, 6, 7}, watched(boot, {{0}, {0, 7}, {0, 6, 7}}, true));
  REQUIRE(one_by_one.certain);
  CHECK(one_by_one.cpus[1].hardware_id == 14);  // vCPU 7 came first
  CHECK(one_by_one.unordered.empty());

  const auto at_once = of({0, 6, 7}, watched(boot, {{0}, {0, 6, 7}}, true));
  REQUIRE(at_once.certain);
  CHECK(at_once.unordered == std::vector<std::vector<std::uint64_t>>{{12, 14}});

  CHECK_FALSE(of({0, 6, 7}, watched(boot, {{0}, {0, 6, 7}}, false)).certain);  // not counted
  CHECK_FALSE(of({0, 6, 7}, watched(boot, {{0, 7}, {0, 6, 7}}, true)).certain);
  CHECK(widest(of({0, 6, 7}, watched(boot, {{0, 7}, {0, 6, 7}}, true))) == "0-2");
  // One was plugged and unplugged before anybody looked.
  CHECK_FALSE(of({0, 6}, watched(boot, {{0, 7}, {0}, {0, 6}}, true)).certain);

  const auto unplugged = of({0, 6}, watched(boot, {{0}, {0, 7}, {0, 6, 7}, {0, 6}}, true));
  CHECK(numbers_of(unplugged) == std::vector{0, 2});  // it keeps its number
  CHECK_FALSE(of({0, 6}, watched(boot, {{0}, {0, 6, 7}, {0, 6}}, true)).certain);
}

TEST_CASE("without a kernel version every possible number is considered") {
  const policy::plan::BootFacts boot{.cold_vcpus = 1};
  CHECK(widest(policy::plan::guest_numbers(vcpus({0, 6, 7}), boot, {})) == "0-2,6-7");
}

TEST_CASE("a kernel's release tells how it numbers vCPUs") {
  using policy::plan::numbering_of;
  CHECK(numbering_of("6.12.36-157") == Numbering::kByApicId);
  CHECK(numbering_of("7.0") == Numbering::kByApicId);
  CHECK(numbering_of("6.10") == Numbering::kByApicId);
  CHECK(numbering_of("6.9.1") == Numbering::kUnknown);
  CHECK(numbering_of("6.1.62") == Numbering::kByPlugging);
  CHECK(numbering_of("5.14.0-503.el9.x86_64") == Numbering::kUnknown);
  CHECK(numbering_of("container") == Numbering::kUnknown);
  CHECK(numbering_of("") == Numbering::kUnknown);
}

TEST_CASE("a VMM's command line tells how its guest was started") {
  using guest::boot_facts;
  const auto smp = [](const char* value) { return boot_facts({"qemu", "-smp", value}); };
  CHECK(smp("1,cores=1,threads=1,sockets=8,maxcpus=8").cold_vcpus == 1);
  CHECK(smp("1,cores=1,threads=1,sockets=8,maxcpus=8").max_vcpus == 8);
  CHECK(smp("sockets=2,cpus=4,maxcpus=8").cold_vcpus == 4);
  CHECK_FALSE(smp("sockets=2").cold_vcpus);
  CHECK(smp("4").max_vcpus == 4);
  CHECK_FALSE(smp("4").may_grow(4));
  CHECK(smp("1,sockets=8").may_grow(4));
  CHECK_FALSE(boot_facts({"qemu", "-smp"}).cold_vcpus);
  CHECK(boot_facts({"cloud-hypervisor", "--cpus", "boot=3,max=8"}).cold_vcpus == 3);
  CHECK(boot_facts({"cloud-hypervisor", "--cpus", "boot=3,max=8"}).max_vcpus == 8);
  CHECK(boot_facts({"/opt/kata/bin/firecracker", "--id", "x"}).plugs_none);
  const auto numbering = [](const char* kernel) {
    return boot_facts({"qemu", "-kernel", kernel}).numbering;
  };
  CHECK(numbering("/opt/kata/share/vmlinux-6.12.36-157") == Numbering::kByApicId);
  CHECK(numbering("/x/vmlinux-6.1.0-100") == Numbering::kByPlugging);
  CHECK(numbering("/x/vmlinux.container") == Numbering::kUnknown);
  CHECK(numbering("/x/vmlinux-six") == Numbering::kUnknown);
}

TEST_CASE("a VMM's command line names the guest's image, but for files of one VM") {
  using guest::image_of;
  CHECK(image_of({"qemu", "-kernel", "/x/vmlinuz", "-initrd", "/x/kata.initrd"}) ==
        "/x/kata.initrd");
  CHECK(image_of({"qemu", "-object",
                  "memory-backend-file,id=mem0,mem-path=/x/kata.img,size=1,readonly=on", "-object",
                  "memory-backend-file,id=dimm1,size=2048M,mem-path=/dev/shm,share=on", "-drive",
                  "id=image-1,file=/x/extension.img,format=raw,if=none,readonly=on", "-drive",
                  "file=/run/kata-containers/shared/s1/initdata.img,readonly=on"}) ==
        "/x/kata.img,/x/extension.img");
  CHECK(image_of({"cloud-hypervisor", "--pmem", "file=/x/kata.img,discard_writes=on"}) ==
        "/x/kata.img");
  CHECK(image_of({"qemu", "-drive", "readonly=on", "-initrd"}).empty());
}

TEST_CASE("a kernel image contains its release if its name does not") {
  const tests::TempDir files;
  const auto written = [&files](const std::string& name, const std::string& bytes) {
    std::ofstream(files.path() / name, std::ios::binary) << bytes;
    return files.path() / name;
  };
  // Its format strings have the same words, and its banner may lie across what is read at once.
  std::string elf = "\177ELF" + std::string(1000, '\0') + "Linux version %s (%s)";
  elf.resize((std::size_t{1} << 20) - 5, '\0');
  elf += "Linux version 6.1.62 (kata@build) (gcc) #1 SMP";
  CHECK(guest::kernel_release(written("vmlinux", elf)) == "6.1.62");

  std::string bzimage(0x800, '\0');
  bzimage.replace(0x202, 4, "HdrS");
  bzimage[0x20e] = '\x00';
  bzimage[0x20f] = '\x04';
  bzimage.replace(0x600, 30, "6.12.48-amd64 (kata@build) #1 ");
  const auto image = written("vmlinuz", bzimage);
  CHECK(guest::kernel_release(image) == "6.12.48-amd64");
  CHECK(guest::boot_facts({"qemu", "-kernel", image.string()}).numbering == Numbering::kByApicId);

  std::filesystem::create_symlink(image, files.path() / "vmlinux.container");
  CHECK(guest::kernel_release(files.path() / "vmlinux.container") == "6.12.48-amd64");
  REQUIRE(::mkfifo((files.path() / "fifo").c_str(), 0600) == 0);
  CHECK(guest::kernel_release(files.path() / "fifo").empty());
  CHECK(guest::kernel_release(written("short", "\177ELF")).empty());
  CHECK(guest::kernel_release(written("text", "Linux version 6.1.62 ")).empty());
  CHECK(guest::kernel_release(files.path() / "none").empty());
}
