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
  policy::PassedThrough find(base::Trouble& trouble) const {
    return host::find_passed_through(proc(), sys(), 41, trouble);
  }
  /// Of what can be read.
  policy::PassedThrough find() const {
    base::Trouble trouble;
    auto found = find(trouble);
    CHECK(trouble.none());
    return found;
  }
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

TEST_CASE("an unreadable interrupt is left out, which is reported") {
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
  base::Trouble trouble;
  const auto found = node.find(trouble);
  CHECK(found.devices == std::vector<DeviceFacts>{{kDevice, -1}});
  CHECK(found.interrupts.empty());
  CHECK(trouble.any());
}

TEST_CASE("what cannot be read of a device is not absent") {
  const Node node;
  node.vfio_device(kDevice, 12, "vfio0", 1);
  node.fd(41, 5, "/dev/vfio/12");
  node.fd(41, 6, "/dev/vfio/devices/vfio0");
  node.msi(kDevice, 45, msix(0), "0-7");
  const auto has_trouble = [&] {
    base::Trouble trouble;
    (void)node.find(trouble);
    return !trouble.none();
  };
  REQUIRE_FALSE(has_trouble());
  const std::string device = "sys/bus/pci/devices/0000:01:00.0/";
  for (const std::string& file :
       {std::string("proc/41/fd"), std::string("proc/41/fd/5"),
        std::string("proc/irq/45/smp_affinity_list"), std::string("sys/kernel/irq/45/actions"),
        std::string("sys/kernel/iommu_groups/12/devices"),
        std::string("sys/class/vfio-dev/vfio0/device"), device + "msi_irqs", device + "irq",
        device + "driver", device + "numa_node"}) {
    CAPTURE(file);
    const auto restore = node.make_unreadable(file);
    CHECK(has_trouble());
    restore();
    CHECK_FALSE(has_trouble());
  }
}

TEST_CASE("whether a node has VFIO devices is not known while its classes cannot be read") {
  const Node node;
  CHECK(host::has_vfio(node.sys()) == false);
  node.write("sys/class/vfio", "");
  const auto unknown = host::has_vfio(node.sys());
  REQUIRE_FALSE(unknown);
  CHECK_FALSE(is_gone(unknown));
  node.write("sys/class/vfio-dev/vfio0/dev", "");
  CHECK(host::has_vfio(node.sys()) == true);
}

TEST_CASE("an interrupt whose handlers cannot be read is not moved, and not gone") {
  const Node node;
  node.vfio_device(kDevice, 12, "vfio0");
  node.msi(kDevice, 45, msix(0), "0-7");
  const InterruptFacts interrupt{45, kDevice, msix(0), "", {0}};
  (void)node.make_unreadable("sys/kernel/irq/45/actions");
  const auto sent = host::send_interrupt(node.proc(), node.sys(), interrupt, {2});
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == base::ErrorCode::kTransient);
  CHECK(node.interrupt_cpus(45) == "0-7");
}

TEST_CASE("an interrupt that was sent and cannot be read back counts as sent") {
  const Node node;
  node.vfio_device(kDevice, 12, "vfio0");
  node.msi(kDevice, 45, msix(0), "0-7");
  const auto file = node.proc() / "irq/45/smp_affinity_list";
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/dev/zero", file);  // takes what is written, and has no end
  const InterruptFacts interrupt{45, kDevice, msix(0), "", {0}};
  CHECK(host::send_interrupt(node.proc(), node.sys(), interrupt, {2}) == CpuSet{2});
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
