// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/partition.hpp"

#include <algorithm>
#include <string_view>

#include "affinity/helper/exclusive_cpus.hpp"
#include "affinity/helper/partition_state.hpp"
#include "base/cgroup_files.hpp"
#include "base/files.hpp"
#include "base/newline.hpp"
#include "base/split.hpp"

namespace ka::helper {
namespace {

using base::Result;
using policy::CpuSet;

constexpr const char* kThreadsFile = base::threads_file(2);
constexpr const char* kControllersFile = "cgroup.subtree_control";

}  // namespace

PartitionCgroup::PartitionCgroup(const CgroupTree& tree, std::string vmm)
    : tree_(tree), vmm_(std::move(vmm)), path_(vmm_ + '/' + base::kPartitionCgroup) {}

Result<bool> PartitionCgroup::is_enabled() const {
  const auto text = tree_.read(vmm_, kControllersFile);
  if (!text) return unexpected(text.error());
  const std::string names = base::without_newline(*text);
  return std::ranges::count(base::split(names, ' '), std::string_view("cpuset")) > 0;
}

Result<void> PartitionCgroup::enable() const {
  return tree_.write(vmm_, kControllersFile, "+cpuset\n");
}

Result<void> PartitionCgroup::disable() const {
  return tree_.write(vmm_, kControllersFile, "-cpuset\n");
}

Result<CpuSet> PartitionCgroup::room_beside(const CpuSet& cpus) const {
  const auto configured = read_cpus(tree_, vmm_, "cpuset.cpus");
  if (!configured) return unexpected(configured.error());
  const auto effective = read_cpus(tree_, vmm_, base::effective_cpus_file(2));
  if (!effective) return unexpected(effective.error());
  const CpuSet allowed = configured->empty() ? *effective : *configured & *effective;
  return allowed - cpus;
}

Result<void> PartitionCgroup::make() const {
  const auto is_there = exists();
  if (!is_there) return unexpected(is_there.error());
  const auto made = *is_there ? Result<void>() : tree_.make(path_);
  return made ? become_threaded() : made;
}

Result<void> PartitionCgroup::become_threaded() const {
  const auto type = tree_.read(path_, "cgroup.type");
  if (type && base::without_newline(*type) == "threaded") return {};
  return tree_.write(path_, "cgroup.type", "threaded\n");
}

Result<std::vector<int>> PartitionCgroup::threads() const {
  const auto text = tree_.read(path_, kThreadsFile);
  if (!text) return unexpected(text.error());
  std::vector<int> threads;
  for (const std::string_view line : base::split(*text, '\n')) {
    const auto tid = base::parse_number(line);
    if (tid) threads.push_back(static_cast<int>(*tid));
  }
  return threads;
}

Result<void> PartitionCgroup::move_in(const policy::ThreadKey& thread) const {
  return tree_.write(path_, kThreadsFile, std::to_string(thread.tid) + '\n');
}

Result<void> PartitionCgroup::move_out(int tid) const {
  auto done = tree_.write(vmm_, kThreadsFile, std::to_string(tid) + '\n');
  return is_gone(done) ? Result<void>() : done;
}

bool PartitionCgroup::is_isolated(const CpuSet& cpus) const {
  return is_partition(tree_, path_, kIsolated, cpus);
}

Result<void> PartitionCgroup::isolate(const CpuSet& cpus) const {
  return make_partition(tree_, path_, kIsolated, cpus);
}

/// Its threads keep their masks: it has all CPUs of the VMM's cgroup again before they leave.
/// (Where the controller is off there is no such file.)
Result<void> PartitionCgroup::remove() const {
  if (const auto ended = end_partition(tree_, path_); !ended) return ended;
  const auto inside = threads();
  if (is_gone(inside)) return {};
  if (!inside) return unexpected(inside.error());
  for (const int tid : *inside) {
    if (auto done = move_out(tid); !done) return done;
  }
  auto done = tree_.remove(path_);
  return is_gone(done) ? Result<void>() : done;
}

}  // namespace ka::helper
