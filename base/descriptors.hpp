// SPDX-License-Identifier: Apache-2.0
// A reserve of file descriptors for when the process runs out, and opening files with it.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <filesystem>

#include "base/fd.hpp"

namespace ka::base {

/// Descriptors that a process holds back: where it has no more (EMFILE, ENFILE), open_file() gives
/// one away and opens the file in its place. So /proc can be read, masks checked and state written
/// while clients have taken all others. One at a time in a process; its owner refills it.
class DescriptorReserve {
 public:
  static constexpr std::size_t kSize = 8;  ///< files that are open at once while one job is done

  DescriptorReserve();
  DescriptorReserve(const DescriptorReserve&) = delete;
  DescriptorReserve& operator=(const DescriptorReserve&) = delete;
  ~DescriptorReserve();

  /// Refills the reserve, as far as descriptors are available.
  void refill();
  /// Closes one; false: none is left. Any thread.
  bool give_one();

 private:
  std::array<std::atomic<int>, kSize> held_;
};

/// open(2), close-on-exec, with the help of the reserve. On failure errno is set.
Fd open_file(const std::filesystem::path& path, int flags, mode_t mode = 0);
/// The same below an open directory (openat(2)).
Fd open_file_at(int directory, const char* name, int flags);

/// Another descriptor of what `fd` is, close-on-exec (F_DUPFD_CLOEXEC), with the help of the
/// reserve. On failure errno is set.
Fd duplicate(int fd);

/// Lets the process open as many files as it may (RLIMIT_NOFILE).
void raise_descriptor_limit();

}  // namespace ka::base
