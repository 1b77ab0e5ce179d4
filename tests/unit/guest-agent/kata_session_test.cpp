#include "guest-agent/host/kata_session.hpp"

#include "guest-agent/host/boot.hpp"
#include "policy/plan/guest_numbers.hpp"
#include "tests/catch.hpp"
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
  bool settle(std::string to_peer) {
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
    return settle(std::move(out));
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

TEST_CASE("kata-agent is told the CPUs of containers, one after the other, in its own messages") {
  Scene scene;
  std::string out = scene.session.start();
  scene.session.update("c1", {3}, out);
  scene.session.update("c2", {0, 1, 2}, out);
  scene.session.update("c2", {0, 1}, out);  // only the last word counts
  REQUIRE(scene.settle(out));
  CHECK(scene.peer.updates == Updates{{"c1", "3"}, {"c2", "0-1"}});
  CHECK(scene.answers.size() == 2);
  CHECK((scene.session.ready() && !scene.session.is_owed()));
  CHECK((scene.session.version() == "4.1.0" && scene.session.is_init()));
}

TEST_CASE("a container that kata-agent does not have, and one that it refuses, are told apart") {
  Scene scene;
  REQUIRE(scene.settle(scene.session.start()));
  scene.peer.refusals = {{"absent", ttrpc::Code::kInvalidArgument},
                         {"broken", ttrpc::Code::kInternal}};
  REQUIRE(scene.update("absent", {1}));
  REQUIRE(scene.update("broken", {1}));
  REQUIRE(scene.answers.size() == 2);
  CHECK(scene.answers[0].problem == GuestProblem::kNotFound);
  CHECK(scene.answers[1].problem == GuestProblem::kRefused);
}

TEST_CASE("a policy that forbids the call ends it for good") {
  Scene scene;
  REQUIRE(scene.settle(scene.session.start()));
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
  CHECK(scene.settle(out));
  CHECK(scene.session.ready());
  KataSession refused(Opening::kConnect, 1024);
  CHECK_FALSE(refused.receive("\n", scene.answers, out));
}

TEST_CASE("whatever a guest says in kata-agent's place ends its own connection only") {
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
  CHECK(after_start(answer(7, "")).find("nobody asked") != std::string::npos);
  CHECK(after_start(answer(1, "") + answer(1, "")).find("nobody asked") != std::string::npos);
  CHECK(after_start(ttrpc::encode(1, ttrpc::kRequest, 0, "")).find("no answer") !=
        std::string::npos);
  CHECK(after_start(answer(1,
                           "\x12\x05"
                           "abc"))
            .find("cannot be read") != std::string::npos);
  CHECK(after_start(std::string("\xff\xff\xff\xff\0\0\0\1\2\0", 10)).find("more than") !=
        std::string::npos);
  CHECK(after_start(answer(1, "").substr(0, 5)).empty());  // the rest may come
}

TEST_CASE("numbers of vCPUs are certain for what was there at boot, and for later kernels") {
  const policy::BootFacts at_boot{.cold_vcpus = 2};
  const auto cpus = policy::guest_cpus_without_agent(vcpus({1, 0}), at_boot);
  REQUIRE(cpus);
  CHECK(((*cpus)[1].number == 1 && (*cpus)[1].hardware_id == 2 && (*cpus)[1].online));
  CHECK_FALSE(policy::guest_cpus_without_agent(vcpus({0, 1, 3}), at_boot));  // one was plugged
  CHECK_FALSE(policy::guest_cpus_without_agent(vcpus({0, 3}), at_boot));     // and one unplugged
  CHECK_FALSE(policy::guest_cpus_without_agent(vcpus({0, 1}), {}));
  CHECK_FALSE(policy::guest_cpus_without_agent({}, at_boot));
  CHECK(policy::guest_cpus_without_agent(vcpus({0, 1}), {.plugs_none = true}));
  const auto plugged = policy::guest_cpus_without_agent(vcpus({0, 3}), {.numbers_at_boot = true});
  REQUIRE(plugged);
  CHECK((*plugged)[1].number == 3);
  CHECK_FALSE(policy::guest_cpus_without_agent({{.index = 0}}, at_boot));  // no APIC id
}

TEST_CASE("a VMM's command line tells how its guest was started") {
  using guest::boot_facts;
  CHECK(boot_facts({"qemu", "-smp", "1,cores=1,threads=1,sockets=8,maxcpus=8"}).cold_vcpus == 1);
  CHECK(boot_facts({"qemu", "-smp", "sockets=2,cpus=4,maxcpus=8"}).cold_vcpus == 4);
  CHECK_FALSE(boot_facts({"qemu", "-smp", "sockets=2"}).cold_vcpus);
  CHECK_FALSE(boot_facts({"qemu", "-smp"}).cold_vcpus);
  CHECK(boot_facts({"cloud-hypervisor", "--cpus", "boot=3,max=8"}).cold_vcpus == 3);
  CHECK(boot_facts({"/opt/kata/bin/firecracker", "--id", "x"}).plugs_none);
  const auto numbers = [](const char* kernel) {
    return boot_facts({"qemu", "-kernel", kernel}).numbers_at_boot;
  };
  CHECK(numbers("/opt/kata/share/vmlinux-6.12.36-157"));
  CHECK(numbers("/x/vmlinuz-7.0"));
  CHECK(numbers("/x/vmlinux-6.10"));
  CHECK_FALSE(numbers("/x/vmlinux-6.9.1"));
  CHECK_FALSE(numbers("/x/vmlinux-6.1.0-100"));
  CHECK_FALSE(numbers("/x/vmlinux.container"));
  CHECK_FALSE(numbers("/x/vmlinux-six"));
}
