// SPDX-License-Identifier: Apache-2.0
#include "base/signals.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/fd.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;

namespace {

/// Writes one byte, in a process of its own that may not make a file longer: the errno, or 128 +
/// the signal that ended it.
int write_limited(int fd) {
  const int child = ::fork();
  if (child == 0) {
    base::ignore_write_signals();
    const rlimit none{};
    ::setrlimit(RLIMIT_FSIZE, &none);
    ::_exit(::write(fd, "x", 1) == 1 ? 0 : errno);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("a write beyond the limit on files, or that nobody reads, is an error") {
  const tests::TempDir dir;
  const base::Fd file(::open((dir.path() / "file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  CHECK(write_limited(file.get()) == EFBIG);
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const base::Fd write(ends[1]);
  ::close(ends[0]);
  CHECK(write_limited(write.get()) == EPIPE);
}
