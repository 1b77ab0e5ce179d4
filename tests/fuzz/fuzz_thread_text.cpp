// What a thread may call itself reaches us through /proc: its stat line, whose name part may hold
// anything, and its comm.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "affinity/base/process.hpp"
#include "vmm/procfs/thread_names.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)ka::base::parse_thread_stat(text);
  (void)ka::vmm::read_thread_name(text);
  return 0;
}
