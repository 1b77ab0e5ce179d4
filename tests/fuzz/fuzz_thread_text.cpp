// SPDX-License-Identifier: Apache-2.0
// What a thread may call itself reaches us through /proc: its stat line, whose name part may hold
// anything, its comm, the system call that it is in, the names of what it opened, and what it
// mapped.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/process.hpp"
#include "tests/fuzz/require.hpp"
#include "vmm/procfs/kvm_fds.hpp"
#include "vmm/procfs/thread_names.hpp"
#include "vmm/procfs/vhost_user.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)ka::base::parse_thread_stat(text);
  (void)ka::vmm::read_thread_name(text);
  if (const auto fd = ka::vmm::kvm_run_fd(text)) ka::tests::require(*fd >= 0);
  ka::vmm::OpenFds fds;
  ka::vmm::add_fd(fds, 3, text);
  for (const auto& [number, vcpu] : fds.kvm_vcpus) ka::tests::require(vcpu >= 0);
  for (const auto& file : ka::vmm::shared_files(text)) ka::tests::require(!file.empty());
  return 0;
}
