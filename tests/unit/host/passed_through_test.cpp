// SPDX-License-Identifier: Apache-2.0
// Devices that a VMM has for itself, on trees of files as sysfs and /proc have them.
#include "affinity/host/passed_through.hpp"

#include "tests/catch.hpp"
#include "tests/fake_node.hpp"

using namespace ka;
using host::Handlers;
using policy::CpuSet;
using policy::DeviceFacts;
using policy::InterruptFacts;
using tests::FakeNode;

namespace {

constexpr const char* kDevice = "0000:01:00.0";

std::string msix(int vector, const std::string& device = kDevice) {
  return "vfio-msix[" + std::to_string(vector) + "](" + device + ')';
}

struct Node : FakeNode {
  Node() {
    process(41, 1, "qemu", "/usr/bin/qemu-system-x86_64");
    fd(41, 3, "/dev/kvm");
    fd(41, 4, "/dev/vfio/vfio");
  }
  policy::PassedThrough find() const { return host::find_passed_through(proc(), sys(), 41); }
};

}  // namespace

TEST_CASE("an interrupt's handlers are VFIO's for the device, and others'") {
  const auto parse = [](const char* text) { return host::parse_handlers(text, kDevice); };
  CHECK(parse("vfio-msix[3](0000:01:00.0)\n") == Handlers{msix(3), ""});
  CHECK(parse("vfio-intx(0000:01:00.0)") == Handlers{"vfio-intx(0000:01:00.0)", ""});
  CHECK(parse("ehci_hcd:usb1,vfio-intx(0000:01:00.0),i801_smbus") ==
        Handlers{"vfio-intx(0000:01:00.0)", "ehci_hcd:usb1,i801_smbus"});
  CHECK(parse("vfio-msi[0](0000:02:00.0)\n") == Handlers{"", "vfio-msi[0](0000:02:00.0)"});
  CHECK(parse("nvme0q1") == Handlers{"", "nvme0q1"});
  CHECK(parse("") == Handlers{});
  CHECK(parse("\n") == Handlers{});
  CHECK(parse(",,") == Handlers{});
}

TEST_CASE("a device of a VFIO group is found with its interrupts") {
  const Node node;
  node.vfio_device(kDevice, 12, "vfio0", 1);
  node.msi(kDevice, 46, msix(1), "0-7");
  node.msi(kDevice, 45, msix(0), "2");
  node.msi(kDevice, 47, "", "0-7");  // allocated, and nobody's yet
  CHECK(node.find() == policy::PassedThrough{});
  node.fd(41, 5, "/dev/vfio/12");
  const auto found = node.find();
  CHECK(found.devices == std::vector<DeviceFacts>{{kDevice, 1}});
  REQUIRE(found.interrupts.size() == 2);
  CHECK(found.interrupts[0] == InterruptFacts{45, kDevice, msix(0), "", {2}});
  CHECK(found.interrupts[1] == InterruptFacts{46, kDevice, msix(1), "", CpuSet::range(0, 7)});
}

TEST_CASE("a device of iommufd is found by its own name") {
  const Node node;
  node.vfio_device(kDevice, 12, "vfio0");
  node.vfio_device("0000:01:00.1", 12, "vfio1");
  node.msi("0000:01:00.1", 50, msix(0, "0000:01:00.1"), "0-7");
  node.fd(41, 5, "/dev/iommu");
  node.fd(41, 6, "/dev/vfio/devices/vfio1");
  const auto found = node.find();
  CHECK(found.devices == std::vector<DeviceFacts>{{"0000:01:00.1", -1}});
  CHECK(found.interrupts.size() == 1);
}

TEST_CASE("INTx is found by the device's own file, with the handlers that share it") {
  const Node node;
  node.vfio_device(kDevice, 12, "vfio0");
  node.write("sys/bus/pci/devices/0000:01:00.0/irq", "16\n");
  node.interrupt(16, "ehci_hcd:usb1,vfio-intx(0000:01:00.0)", "0-7");
  node.fd(41, 5, "/dev/vfio/12");
  const auto found = node.find();
  REQUIRE(found.interrupts.size() == 1);
  CHECK(found.interrupts[0].number == 16);
  CHECK(found.interrupts[0].shared_with == "ehci_hcd:usb1");
}

TEST_CASE("a device in the group but not bound to VFIO is not passed through") {
  const Node node;
  node.vfio_device(kDevice, 12, "vfio0");
  node.write("sys/kernel/iommu_groups/12/devices/0000:00:01.0", "");
  node.write("sys/bus/pci/devices/0000:00:01.0/irq", "24\n");
  node.interrupt(24, "pcieport", "0-7");
  node.fd(41, 5, "/dev/vfio/12");
  CHECK(node.find().devices.size() == 1);
  CHECK(node.find().interrupts.empty());
}

TEST_CASE("an unreadable interrupt is left out") {
  const Node node;
  node.vfio_device(kDevice, 12, "vfio0");
  node.fd(41, 5, "/dev/vfio/12");
  node.msi(kDevice, 45, msix(0), "99999999999999999999");
  node.msi(kDevice, 46, msix(1), "\xff\xfe garbage");
  node.msi(kDevice, 47, msix(2), "0-4294967295");
  node.write("sys/bus/pci/devices/0000:01:00.0/irq", "123456789012345678901234567890\n");
  node.write("sys/bus/pci/devices/0000:01:00.0/msi_irqs/4294967297", "msix\n");
  node.write("sys/bus/pci/devices/0000:01:00.0/msi_irqs/none", "msix\n");
  node.write("sys/bus/pci/devices/0000:01:00.0/numa_node", "x\n");
  node.fd(41, 6, "/dev/vfio/");
  node.fd(41, 7, "/dev/vfio/noiommu-3");
  node.fd(41, 8, "/dev/vfio/devices/../../../etc");
  const auto found = node.find();
  CHECK(found.devices == std::vector<DeviceFacts>{{kDevice, -1}});
  CHECK(found.interrupts.empty());
}

TEST_CASE("an interrupt is moved if it still belongs to its device") {
  const Node node;
  node.vfio_device(kDevice, 12, "vfio0");
  node.fd(41, 5, "/dev/vfio/12");
  node.msi(kDevice, 45, msix(0), "0-7");
  const InterruptFacts interrupt = node.find().interrupts.at(0);
  const auto send = [&] {
    return host::send_interrupt(node.proc(), node.sys(), interrupt, {2, 3});
  };
  CHECK(send() == CpuSet{2, 3});
  CHECK(node.interrupt_cpus(45) == "2-3");

  node.interrupt(45, "nvme0q1", "0-7");
  REQUIRE_FALSE(send());
  CHECK(send().error().code == base::ErrorCode::kGone);
  CHECK(node.interrupt_cpus(45) == "0-7");

  node.free_interrupt(kDevice, 45);
  REQUIRE_FALSE(send());
  CHECK(send().error().code == base::ErrorCode::kGone);
}

TEST_CASE("an interrupt fixed by the kernel cannot be moved") {
  const Node node;
  node.vfio_device(kDevice, 12, "vfio0");
  node.msi(kDevice, 45, msix(0), "0");
  node.nail_interrupt(45);
  const InterruptFacts interrupt{45, kDevice, msix(0), "", {0}};
  const auto sent = host::send_interrupt(node.proc(), node.sys(), interrupt, {0});
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code != base::ErrorCode::kGone);
  CHECK(sent.error().code != base::ErrorCode::kTransient);
}
