// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/tenants.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/cgroup_files.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace ka::host {
namespace {

namespace fs = std::filesystem;
using policy::CpuSet;

std::vector<int> parse_numbers(std::string_view text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error == std::errc{} && number > 0) numbers.push_back(number);
    at = next == at ? at + 1 : next;
  }
  return numbers;
}

/// A cgroup's directory has a link for each cgroup in it, and two more (kernfs_refresh_inode in
/// fs/kernfs/inode.c): looking at the link count is much cheaper than listing its files.
bool is_leaf(const fs::path& directory) {
  struct stat status{};
  return ::stat(directory.c_str(), &status) == 0 && status.st_nlink == 2;
}

class Walk {
 public:
  Walk(const Cgroups& cgroups, const CpuSet& cpus)
      : mount_(cgroups.mount()), version_(cgroups.version()), cpus_(cpus) {}

  Tenants release() {
    visit(mount_, cpus_);
    std::ranges::sort(tenants_.list, {}, &Tenant::directory);
    return std::move(tenants_);
  }

 private:
  void visit(const fs::path& directory, const CpuSet& above);
  CpuSet allowed(const fs::path& directory, const CpuSet& above);
  void add_threads(const fs::path& directory, const CpuSet& cpus);
  void record(const base::Error& error);

  const fs::path& mount_;
  int version_;
  const CpuSet& cpus_;
  Tenants tenants_;
};

/// `above`: of the CPUs asked about, those that the cgroup above allows.
void Walk::visit(const fs::path& directory, const CpuSet& above) {
  const CpuSet cpus = allowed(directory, above);
  if (cpus.empty()) return;
  add_threads(directory, cpus);
  if (is_leaf(directory)) return;
  const auto names = base::list_subdirectories(directory);
  if (!names) return record(names.error());
  for (const std::string& name : *names) visit(directory / name, cpus);
}

/// One without files of its own (version 2) has what the one above it has.
CpuSet Walk::allowed(const fs::path& directory, const CpuSet& above) {
  auto text = base::read_file(directory / base::effective_cpus_file(version_));
  if (version_ == 1 && is_gone(text)) {
    text = base::read_file(directory / "cpuset.cpus");
  }
  if (!text) {
    if (!is_gone(text)) record(text.error());
    return above;
  }
  ++tenants_.cgroups;
  const auto set = policy::parse_list<policy::CpuTag>(*text);
  return set ? *set & above : above;
}

void Walk::add_threads(const fs::path& directory, const CpuSet& cpus) {
  const auto text = base::read_file(directory / base::threads_file(version_));
  // A threaded domain that is invalid holds none (EOPNOTSUPP, kernel/cgroup/cgroup.c).
  if (!text && text.error().number == EOPNOTSUPP) return;
  if (!text) return record(text.error());
  auto threads = parse_numbers(*text);
  if (threads.empty()) return;
  const fs::path below = directory == mount_ ? fs::path() : directory.lexically_relative(mount_);
  tenants_.list.push_back(
      {base::printable(below.native(), base::kMaxPath), cpus, std::move(threads)});
}

void Walk::record(const base::Error& error) {
  if (!is_gone(error)) tenants_.unread.push_back(error.message);
}

}  // namespace

Tenants tenants_of(const Cgroups& cgroups, const CpuSet& cpus) {
  return Walk(cgroups, cpus).release();
}

}  // namespace ka::host
