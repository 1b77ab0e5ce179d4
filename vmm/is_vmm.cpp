#include <algorithm>
#include <array>
#include <string>

#include "vmm/procfs/kvm_fds.hpp"
#include "vmm/procfs/relatives.hpp"
#include "vmm/procfs/thread_list.hpp"
#include "vmm/threads.hpp"

namespace ka::vmm {
namespace {

// Programs that are nothing but a VMM; each by how its name begins. Dragonball has no program of
// its own: it is told by its VM.
constexpr std::array<std::string_view, 6> kPrograms = {
    "qemu-system-", "qemu-kvm", "cloud-hypervisor", "firecracker", "openvmm", "stratovirt",
};

bool is_vmm_program(std::string_view name) {
  return std::ranges::any_of(kPrograms,
                             [name](std::string_view known) { return name.starts_with(known); });
}

}  // namespace

base::Result<bool> is_vmm(const Roots& roots, int pid) {
  const auto group = thread_group(roots.proc, pid);
  if (!group) return unexpected(group.error());
  if (is_vmm_program(program_name(roots.proc, *group))) return true;
  const auto fds = read_fds(roots.proc, *group);
  if (!fds) return unexpected(fds.error());
  return fds->kvm_vms > 0;
}

}  // namespace ka::vmm
