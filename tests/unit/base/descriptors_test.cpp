// SPDX-License-Identifier: Apache-2.0
#include "base/descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <cerrno>
#include <vector>

#include "tests/catch.hpp"

using ka::base::DescriptorReserve;
using ka::base::Fd;
using ka::base::open_file;

namespace {

/// A process that may open a few files only, until the end of the test.
struct FewDescriptors {
  FewDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit few = before;
    few.rlim_cur = 40;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

  rlimit before{};
};

/// Takes all that are left, as clients would.
std::vector<Fd> open_all() {
  std::vector<Fd> opened;
  for (Fd fd(::open("/dev/null", O_RDONLY)); fd; fd = Fd(::open("/dev/null", O_RDONLY))) {
    opened.push_back(std::move(fd));
  }
  return opened;
}

}  // namespace

TEST_CASE("files can be opened when all other descriptors are taken") {
  const FewDescriptors few;
  DescriptorReserve reserve;
  CHECK(reserve.size() == DescriptorReserve::kSize);
  std::vector<Fd> opened = open_all();
  std::vector<Fd> files;
  for (std::size_t i = 0; i < DescriptorReserve::kSize; ++i) {
    files.push_back(open_file("/dev/null", O_RDONLY));
    CHECK(files.back());
  }
  CHECK(reserve.size() == 0);
  CHECK_FALSE(open_file("/dev/null", O_RDONLY));
  CHECK(errno == EMFILE);
  opened.clear();
  reserve.refill();
  CHECK(reserve.size() == DescriptorReserve::kSize);
}

TEST_CASE("a missing file uses no reserve descriptor") {
  const DescriptorReserve reserve;
  CHECK_FALSE(open_file("/nonexistent", O_RDONLY));
  CHECK(errno == ENOENT);
  CHECK(reserve.size() == DescriptorReserve::kSize);
}
