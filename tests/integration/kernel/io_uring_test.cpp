// SPDX-License-Identifier: Apache-2.0
#include <linux/io_uring.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <thread>

#include "base/fd.hpp"
#include "base/thread_stats.hpp"
#include "tests/catch.hpp"
#include "vmm/procfs/thread_list.hpp"
#include "vmm/procfs/thread_names.hpp"

using namespace ka;

namespace {

/// A ring whose submissions a thread of the kernel's polls for.
base::Fd polled_ring() {
  io_uring_params parameters{};
  parameters.flags = IORING_SETUP_SQPOLL;
  return base::Fd(static_cast<int>(::syscall(SYS_io_uring_setup, 4, &parameters)));
}

std::optional<vmm::SeenThread> find_io_uring_thread() {
  base::ThreadStats stats("/proc");
  const auto self = vmm::read_process(stats, ::getpid());
  if (!self) return std::nullopt;
  const auto made = std::ranges::find_if(self->threads, [](const vmm::SeenThread& thread) {
    return vmm::io_uring_submitter(thread.comm).has_value();
  });
  return made == self->threads.end() ? std::nullopt : std::optional(*made);
}

/// It names itself once it runs, which may be after the ring is there.
vmm::SeenThread thread_of_ring() {
  for (;;) {
    if (const auto made = find_io_uring_thread()) return *made;
    std::this_thread::yield();
  }
}

/// Whether the kernel accepts the mask that the thread has.
bool accepts_mask(int tid) {
  cpu_set_t cpus;
  return ::sched_getaffinity(tid, sizeof cpus, &cpus) == 0 &&
         ::sched_setaffinity(tid, sizeof cpus, &cpus) == 0;
}

}  // namespace

TEST_CASE("a real io_uring thread names its submitter, and is movable if the kernel allows it") {
  const base::Fd ring = polled_ring();
  if (!ring) {
    std::cout << "skipped: this kernel offers no io_uring\n";
    return;
  }
  const vmm::SeenThread made = thread_of_ring();
  CHECK(vmm::io_uring_submitter(made.comm) == ::gettid());
  CHECK(made.movable == accepts_mask(made.key.tid));
}
