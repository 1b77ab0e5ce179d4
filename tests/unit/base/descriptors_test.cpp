// SPDX-License-Identifier: Apache-2.0
#include "base/descriptors.hpp"

#include <fcntl.h>

#include <cerrno>
#include <vector>

#include "base/files.hpp"
#include "base/uninterrupted.hpp"
#include "tests/catch.hpp"
#include "tests/few_descriptors.hpp"
#include "tests/temp_dir.hpp"

using ka::base::DescriptorReserve;
using ka::base::Fd;
using ka::base::open_file;
using ka::tests::FewDescriptors;
using ka::tests::open_all;

namespace {

/// How many files can be opened when clients have taken all descriptors.
std::size_t files_beside_clients() {
  const std::vector<Fd> clients = open_all();
  std::vector<Fd> files;
  for (Fd fd = open_file("/dev/null", O_RDONLY); fd; fd = open_file("/dev/null", O_RDONLY)) {
    files.push_back(std::move(fd));
  }
  CHECK(errno == EMFILE);
  return files.size();
}

}  // namespace

TEST_CASE("files can be opened when all other descriptors are taken") {
  const FewDescriptors few;
  CHECK(files_beside_clients() == 0);
  DescriptorReserve reserve;
  CHECK(files_beside_clients() == DescriptorReserve::kSize);
  CHECK(files_beside_clients() == 0);
  reserve.refill();
  CHECK(files_beside_clients() == DescriptorReserve::kSize);
}

TEST_CASE("a regular file can be read when all other descriptors are taken") {
  const ka::tests::TempDir dir;
  dir.write("state", "kept");
  const FewDescriptors few;
  const DescriptorReserve reserve;
  const std::vector<Fd> clients = open_all();
  CHECK(ka::base::read_regular_file(dir.path() / "state") == "kept");
}

TEST_CASE("a descriptor is duplicated when all other descriptors are taken") {
  const FewDescriptors few;
  const Fd file(::open("/dev/null", O_RDONLY));
  const DescriptorReserve reserve;
  const std::vector<Fd> clients = open_all();
  std::vector<Fd> copies;
  for (std::size_t i = 0; i < DescriptorReserve::kSize; ++i) {
    copies.push_back(ka::base::duplicate(file.get()));
    CHECK(::fcntl(copies.back().get(), F_GETFD) == FD_CLOEXEC);
  }
  CHECK_FALSE(ka::base::duplicate(file.get()));
  CHECK(errno == EMFILE);
}

TEST_CASE("a missing file uses no reserve descriptor") {
  const FewDescriptors few;
  const DescriptorReserve reserve;
  CHECK_FALSE(open_file("/nonexistent", O_RDONLY));
  CHECK(errno == ENOENT);
  CHECK(files_beside_clients() == DescriptorReserve::kSize);
}

TEST_CASE("an interrupted system call is repeated, but not for ever") {
  int calls = 0;
  const auto interrupted = [&calls](int times) {
    calls = 0;
    return ka::base::uninterrupted([&calls, times] {
      errno = EINTR;
      return ++calls > times ? 7 : -1;
    });
  };
  CHECK(interrupted(0) == 7);
  CHECK(interrupted(ka::base::kMostInterruptions) == 7);
  CHECK(interrupted(ka::base::kMostInterruptions + 1) == -1);
  CHECK(errno == EINTR);
  CHECK(ka::base::uninterrupted([&calls] {
          ++calls;
          errno = EIO;
          return -1;
        }) == -1);
  CHECK(calls == ka::base::kMostInterruptions + 2);  // once
}
