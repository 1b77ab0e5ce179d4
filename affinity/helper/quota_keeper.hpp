// SPDX-License-Identifier: Apache-2.0
// Keeps cgroups without a CFS quota, as often as others give them one, and gives back what these
// last wanted.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "affinity/helper/cgroup_tree.hpp"
#include "affinity/helper/quota_records.hpp"
#include "affinity/helper/record_file.hpp"
#include "base/log/log.hpp"
#include "base/result.hpp"

namespace ka::helper {

class QuotaKeeper {
 public:
  /// `tree` and `log` must outlive it.
  QuotaKeeper(CgroupTree& tree, RecordFile<QuotaRecords> file, const log::Log& log);

  /// Takes over what an earlier helper recorded. Where that cannot be read, nothing is ever
  /// written: problem() says why.
  void adopt();
  /// From now on these cgroups have no quota, and others have theirs back.
  void keep(std::set<std::string> cgroups);
  /// Reads all again, and repairs it.
  void check();

  bool holds() const { return !wanted_.empty() || !records_.empty(); }
  const std::filesystem::path& file() const { return file_.path(); }
  /// Why nothing can be written; empty: it can.
  const std::string& problem() const { return damage_.empty() ? problem_ : damage_; }
  /// Why a cgroup has a quota still, as the last check() found it; empty: it has none.
  std::string problem_of(const std::string& cgroup) const;

 private:
  bool give_back(const std::string& cgroup, const std::string& theirs);
  void remember(const std::string& cgroup, const std::string& now);
  base::Result<void> lift(const std::string& cgroup);
  bool save();

  CgroupTree& tree_;
  RecordFile<QuotaRecords> file_;
  const log::Log& log_;
  QuotaRecords records_;
  std::set<std::string> wanted_;
  std::map<std::string, std::string> problems_;  ///< by cgroup
  std::string problem_;
  std::string damage_;  ///< why what an earlier helper changed is not known; empty: it is
};

}  // namespace ka::helper
