// SPDX-License-Identifier: Apache-2.0
// The beginning of a disk image that anybody made: partition table and superblock.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fd.hpp"
#include "guest-agent/image/disk.hpp"
#include "tests/fuzz/require.hpp"

using namespace ka;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const base::Fd file(::memfd_create("image", MFD_CLOEXEC));
  tests::require(::write(file.get(), data, size) == static_cast<ssize_t>(size));
  const auto disk = image::read_disk("/proc/self/fd/" + std::to_string(file.get()));
  // What is found lies inside.
  if (disk) tests::require(disk->offset <= size);
  return 0;
}
