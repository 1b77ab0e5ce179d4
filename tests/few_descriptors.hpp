// SPDX-License-Identifier: Apache-2.0
// A process that has run out of descriptors.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>

#include <cstdlib>
#include <vector>

#include "base/fd.hpp"

namespace ka::tests {

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

/// The undefined behaviour sanitizer opens a pipe to look at the type of an object: without
/// descriptors it takes every object for damaged.
inline bool has_sanitizers() { return std::getenv("KATA_AFFINITY_SANITIZERS") != nullptr; }

/// Takes all that are left, as clients would.
inline std::vector<base::Fd> open_all() {
  std::vector<base::Fd> opened;
  for (base::Fd fd(::open("/dev/null", O_RDONLY)); fd;
       fd = base::Fd(::open("/dev/null", O_RDONLY))) {
    opened.push_back(std::move(fd));
  }
  return opened;
}

}  // namespace ka::tests
