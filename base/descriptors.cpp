// SPDX-License-Identifier: Apache-2.0
#include "base/descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/uninterrupted.hpp"

namespace ka::base {
namespace {

/// Descriptors are the process's, so is what is held back of them.
std::atomic<DescriptorReserve*> reserve_of_process{nullptr};

bool is_full(int number) { return number == EMFILE || number == ENFILE; }

template <typename Open>
Fd open_with_reserve(Open open) {
  for (;;) {
    Fd fd(uninterrupted(open));
    const int failed = errno;
    DescriptorReserve* reserve = reserve_of_process;
    if (fd || !is_full(failed) || reserve == nullptr || !reserve->give_one()) {
      errno = failed;
      return fd;
    }
  }
}

}  // namespace

DescriptorReserve::DescriptorReserve() {
  for (auto& held : held_) held = -1;
  refill();
  reserve_of_process = this;
}

DescriptorReserve::~DescriptorReserve() {
  reserve_of_process = nullptr;
  while (give_one()) {
  }
}

void DescriptorReserve::refill() {
  for (auto& held : held_) {
    if (held < 0) held = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
}

bool DescriptorReserve::give_one() {
  return std::ranges::any_of(held_, [](auto& held) {
    const int number = held.exchange(-1);
    return number >= 0 && ::close(number) == 0;
  });
}

Fd open_file(const std::filesystem::path& path, int flags, mode_t mode) {
  return open_with_reserve([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
}

Fd open_file_at(int directory, const char* name, int flags) {
  return open_with_reserve([&] { return ::openat(directory, name, flags | O_CLOEXEC); });
}

Fd duplicate(int fd) {
  return open_with_reserve([&] { return ::fcntl(fd, F_DUPFD_CLOEXEC, 0); });
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace ka::base
