// SPDX-License-Identifier: Apache-2.0
#include "vmm/clh/vm_info.hpp"

#include "tests/catch.hpp"
#include "tests/peers/clh/scripted_api.hpp"

using namespace ka;
using base::ErrorCode;

namespace {

std::string with_cpus(const std::string& cpus, const std::string& rest = "") {
  return R"({"state":"Running","config":{"cpus":{)" + cpus + "}" + rest + "}}";
}

bool is_refused(const std::string& body) {
  const auto info = clh::read_vm_info(body);
  return !info && info.error().code == ErrorCode::kInvalid;
}

/// "0/0/0": socket, core and thread of each vCPU, and its node where that is not 0.
std::string places(const vmm::MonitorFacts& facts) {
  std::string text;
  for (const auto& [vcpu, tid] : facts.vcpus) {
    CHECK(tid == 0);
    text += (text.empty() ? "" : " ") + std::to_string(vcpu.socket) + '/' +
            std::to_string(vcpu.core) + '/' + std::to_string(vcpu.thread);
    if (vcpu.numa != 0) text += '@' + std::to_string(vcpu.numa);
  }
  return text;
}

}  // namespace

TEST_CASE("vm.info gives the number of vCPUs") {
  const auto info = clh::read_vm_info(tests::vm_info(3));
  REQUIRE(info);
  CHECK(*info == clh::VmInfo{.vcpus = 3, .max_vcpus = 8});
  CHECK(clh::to_facts(*info).source == "cloud-hypervisor");
  CHECK(places(clh::to_facts(*info)) == "0/0/0 0/1/0 0/2/0");
}

TEST_CASE("vm.info gives the guest's topology") {
  const auto info = clh::read_vm_info(with_cpus(
      R"("boot_vcpus":5,"max_vcpus":8,"topology":{"threads_per_core":2,"cores_per_die":1,
         "dies_per_package":2,"packages":2})",
      R"(,"numa":[{"guest_numa_id":0,"cpus":[0,1,2,3]},{"guest_numa_id":1,"cpus":[4,5]},
         {"guest_numa_id":2,"cpus":null}])"));
  REQUIRE(info);
  CHECK(places(clh::to_facts(*info)) == "0/0/0 0/0/1 0/1/0 0/1/1 1/2/0@1");
  const auto zeros = clh::read_vm_info(
      with_cpus(R"("boot_vcpus":2,"topology":{"threads_per_core":0,"cores_per_die":0,
                   "dies_per_package":0,"packages":0})"));
  REQUIRE(zeros);
  CHECK(places(clh::to_facts(*zeros)) == "0/0/0 0/1/0");
}

TEST_CASE("vm.info tells how the guest was started, if a runtime did it through the API") {
  const auto boot = [](const std::string& cpus, const std::string& rest) {
    const auto info = clh::read_vm_info(with_cpus(cpus, rest));
    REQUIRE(info);
    return clh::to_facts(*info).boot;
  };
  const std::string image = "/opt/kata/share/kata-containers/vmlinux.container";
  const vmm::GuestBoot katas =
      boot(R"("boot_vcpus":1,"max_vcpus":8)",
           R"(,"payload":{"firmware":null,"kernel":")" + image +
               R"(","cmdline":"root=/dev/pmem0p1","initramfs":null},"disks":[{"path":"/x.img"}])");
  CHECK(katas == vmm::GuestBoot{.max_vcpus = 8, .kernel = image, .plugs_in_order = true});
  const std::string one = R"("boot_vcpus":1)";
  CHECK(boot(one, R"(,"kernel":{"path":"/k"})").kernel == "/k");
  CHECK(boot(one, R"(,"payload":{"firmware":"/f","kernel":null})").kernel.empty());
  CHECK(boot(one, R"(,"payload":{"kernel":"vmlinux"})").kernel.empty());
  CHECK(boot(one, R"(,"payload":{"kernel":"/a\nb"})").kernel.empty());
  CHECK_FALSE(boot(one, "").max_vcpus);
}

TEST_CASE("invalid responses to vm.info are rejected") {
  CHECK(is_refused(""));
  CHECK(is_refused("[]"));
  CHECK(is_refused("{}"));
  CHECK(is_refused(R"({"config":{"cpus":3}})"));
  CHECK(is_refused(with_cpus(R"("boot_vcpus":"2")")));
  CHECK(is_refused(with_cpus(R"("boot_vcpus":0)")));
  CHECK(is_refused(with_cpus(R"("boot_vcpus":8192)")));
  CHECK(is_refused(with_cpus(R"("boot_vcpus":1.5)")));
  CHECK(is_refused(with_cpus(R"("boot_vcpus":2,"topology":{"threads_per_core":-1})")));
  CHECK(is_refused(with_cpus(R"("boot_vcpus":2,"topology":4)")));
  CHECK(is_refused(with_cpus(R"("boot_vcpus":2,"max_vcpus":1)")));
  CHECK(is_refused(with_cpus(R"("boot_vcpus":2,"max_vcpus":"8")")));
  CHECK(is_refused(with_cpus(R"("boot_vcpus":2)", R"(,"numa":[{"cpus":[1]}])")));
  CHECK(is_refused(with_cpus(R"("boot_vcpus":2)", R"(,"numa":{"guest_numa_id":1})")));
  CHECK(is_refused(std::string(100, '[')));
}
