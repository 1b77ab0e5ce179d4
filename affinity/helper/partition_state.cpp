// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/partition_state.hpp"

#include <utility>

#include "affinity/helper/exclusive_cpus.hpp"
#include "base/newline.hpp"
#include "base/text.hpp"

namespace ka::helper {
namespace {

using base::Result;
using policy::CpuSet;

constexpr const char* kStateFile = "cpuset.cpus.partition";

Result<std::string> read_state(const CgroupTree& tree, const std::string& cgroup) {
  auto text = tree.read(cgroup, kStateFile);
  return text ? base::without_newline(*std::move(text)) : std::move(text);
}

}  // namespace

bool is_partition(const CgroupTree& tree, const std::string& cgroup, std::string_view kind,
                  const CpuSet& cpus) {
  const auto now = read_cpus(tree, cgroup, kExclusiveFile);
  const auto found = read_state(tree, cgroup);
  return now && *now == cpus && found && *found == kind;
}

/// A write that succeeds may leave "isolated invalid (REASON)".
Result<void> make_partition(const CgroupTree& tree, const std::string& cgroup,
                            std::string_view kind, const CpuSet& cpus) {
  const auto now = read_cpus(tree, cgroup, kExclusiveFile);
  if (!now) return unexpected(now.error());
  if (*now != cpus) {
    if (auto done = write_cpus(tree, cgroup, kExclusiveFile, cpus); !done) return done;
  }
  auto found = read_state(tree, cgroup);
  if (found && *found != kind) {
    const auto done = tree.write(cgroup, kStateFile, std::string(kind) + '\n');
    found = done ? read_state(tree, cgroup) : unexpected(done.error());
  }
  if (!found) return unexpected(found.error());
  if (*found == kind) return {};
  return base::fail(base::ErrorCode::kConflict, "the kernel makes no partition: " +
                                                    base::printable(*found, base::kMaxSentence));
}

Result<void> end_partition(const CgroupTree& tree, const std::string& cgroup) {
  auto done = tree.write(cgroup, kStateFile, "member\n");
  return is_gone(done) ? Result<void>() : done;
}

}  // namespace ka::helper
