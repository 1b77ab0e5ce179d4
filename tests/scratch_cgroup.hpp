// SPDX-License-Identifier: Apache-2.0
// A cpuset cgroup of the running kernel, for tests that may make one.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "affinity/host/cgroup.hpp"
#include "base/files.hpp"

namespace ka::tests {

/// The memory nodes that a cgroup allows, as the kernel writes them.
inline std::string mems_of(const std::filesystem::path& cgroup) {
  for (const char* name : {"cpuset.mems.effective", "cpuset.effective_mems"}) {
    if (auto text = base::read_file(cgroup / name)) return *text;
  }
  return "0";
}

/// A cgroup below the root of the hierarchy, with all of the root's CPUs.
class ScratchCgroup {
 public:
  explicit ScratchCgroup(const host::Cgroups& cgroups)
      : path_(cgroups.mount() / ("ka-test-" + std::to_string(::getpid()))) {
    const auto root = cgroups.read(cgroups.mount());
    ready_ = root && ::mkdir(path_.c_str(), 0755) == 0 &&
             write("cpuset.cpus", policy::format_list(root->cpus)) &&
             write("cpuset.mems", mems_of(cgroups.mount()));
  }
  ScratchCgroup(const ScratchCgroup&) = delete;
  ScratchCgroup& operator=(const ScratchCgroup&) = delete;
  /// A process that was killed leaves its cgroup a little after it was waited for.
  ~ScratchCgroup() {
    for (int i = 0; i < 100 && ::rmdir(path_.c_str()) != 0 && errno == EBUSY; ++i) ::usleep(10000);
  }

  bool ready() const { return ready_; }
  const std::filesystem::path& path() const { return path_; }
  bool write(const char* file, const std::string& text) const {
    return base::write_kernel_file(path_ / file, text).has_value();
  }

 private:
  std::filesystem::path path_;
  bool ready_ = false;
};

}  // namespace ka::tests
