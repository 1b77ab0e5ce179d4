// SPDX-License-Identifier: Apache-2.0
// The groups that were made and the threads that were moved, on disk: whoever runs next puts them
// back.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "affinity/helper/resctrl.hpp"
#include "base/result.hpp"
#include "policy/facts/rdt.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::helper {

struct RdtTask {
  std::string name;  ///< of its class
  RdtHome theirs;    ///< where it was before

  bool operator==(const RdtTask&) const = default;
};

struct RdtRecords {
  std::map<std::string, policy::RdtShares> groups;  ///< by name of the class
  std::map<policy::ThreadKey, RdtTask> tasks;       ///< each in a class of `groups`

  bool empty() const { return groups.empty() && tasks.empty(); }
  bool operator==(const RdtRecords&) const = default;
};

/// The text form, with the boot that it belongs to.
std::string to_text(const RdtRecords& records, const std::string& boot_id);
/// kInvalid for a text that is damaged or of a newer version; kGone for one of another boot.
base::Result<RdtRecords> rdt_from_text(std::string_view text, const std::string& boot_id);

class RdtRecordFile {
 public:
  /// `directory` must exist.
  RdtRecordFile(const std::filesystem::path& directory, std::string boot_id)
      : path_(directory / "resctrl.json"), boot_id_(std::move(boot_id)) {}

  const std::filesystem::path& path() const { return path_; }
  /// Empty where there is no file, or one of another boot, whose groups the kernel has not.
  base::Result<RdtRecords> load() const;
  /// Removes the file where there is nothing to record.
  base::Result<void> save(const RdtRecords& records) const;

 private:
  std::filesystem::path path_;
  std::string boot_id_;
};

}  // namespace ka::helper
