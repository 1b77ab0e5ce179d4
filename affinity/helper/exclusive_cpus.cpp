// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/exclusive_cpus.hpp"

#include <iterator>

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;
using policy::CpuSet;

bool is_in(const std::string& cgroup, const std::string& above) {
  return cgroup == above || cgroup.starts_with(above + '/');
}

CpuSet needed_in(const std::string& cgroup, const PartitionRecords& records) {
  CpuSet cpus;
  for (const auto& [vmm, record] : records.partitions) {
    if (is_in(record.cgroup, cgroup)) cpus |= record.partition.cpus | record.giving_up;
  }
  return cpus;
}

/// One that is gone took its file with it.
Result<void> withdraw(const CgroupTree& tree, const std::string& cgroup, const CpuSet& cpus) {
  const auto now = read_cpus(tree, cgroup, kExclusiveFile);
  if (!now && !is_gone(now)) return unexpected(now.error());
  if (!now || !now->intersects(cpus)) return {};
  auto done = write_cpus(tree, cgroup, kExclusiveFile, *now - cpus);
  return done || !is_gone(done) ? done : Result<void>();
}

}  // namespace

std::vector<std::string> way_to(const std::string& cgroup) {
  std::vector<std::string> way;
  for (std::size_t end = cgroup.find('/', 1); end != std::string::npos;
       end = cgroup.find('/', end + 1)) {
    way.push_back(cgroup.substr(0, end));
  }
  way.push_back(cgroup);
  return way;
}

Result<CpuSet> read_cpus(const CgroupTree& tree, const std::string& cgroup,
                         const std::string& file) {
  const auto text = tree.read(cgroup, file);
  if (!text) return unexpected(text.error());
  auto cpus = policy::parse_list<policy::CpuTag>(*text);
  if (cpus) return *std::move(cpus);
  return base::fail(ErrorCode::kInvalid, cgroup + '/' + file + ": " + cpus.error().reason);
}

/// An empty line is an empty set; a write without any character never reaches the kernel's file.
Result<void> write_cpus(const CgroupTree& tree, const std::string& cgroup, const std::string& file,
                        const CpuSet& cpus) {
  return tree.write(cgroup, file, policy::format_list(cpus) + '\n');
}

Result<std::vector<LackingCpus>> find_lacking(const CgroupTree& tree, const std::string& cgroup,
                                              const CpuSet& cpus) {
  std::vector<LackingCpus> found;
  for (const std::string& one : way_to(cgroup)) {
    const auto now = read_cpus(tree, one, kExclusiveFile);
    if (is_gone(now)) {
      return base::fail(ErrorCode::kUnavailable,
                        one + " has no " + kExclusiveFile +
                            ": the kernel is older than 6.7, or the cpuset controller is off");
    }
    if (!now) return unexpected(now.error());
    if (!cpus.subset_of(*now)) found.push_back({one, *now, cpus - *now});
  }
  return found;
}

/// The lowest first: what a cgroup has must be in those above it.
bool withdraw_unneeded(const CgroupTree& tree, PartitionRecords& records) {
  bool is_done = true;
  for (auto entry = records.added.end(); entry != records.added.begin();) {
    --entry;
    const CpuSet unneeded = entry->second - needed_in(entry->first, records);
    if (!unneeded.empty() && !withdraw(tree, entry->first, unneeded)) {
      is_done = false;
      continue;
    }
    entry->second -= unneeded;
    if (entry->second.empty()) entry = records.added.erase(entry);
  }
  return is_done;
}

}  // namespace ka::helper
