// SPDX-License-Identifier: Apache-2.0
// What was written to the host, on disk: whoever runs next puts it back.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/plan/host_masks.hpp"

namespace ka::helper {

/// Kind and name of a mask.
using MaskKey = std::pair<std::string, std::string>;

struct Records {
  policy::CpuSet quiet;  ///< the CPUs that the host was kept off
  std::map<MaskKey, policy::plan::HostRecord> masks;
  /// Those of `masks` whose write was begun, and is not known to be done: it may have several
  /// steps.
  std::set<MaskKey> begun;

  bool operator==(const Records&) const = default;
};

inline constexpr std::size_t kMaxRecords = std::size_t{16} << 20;  ///< bytes

/// The text form, with the boot that it belongs to.
std::string to_text(const Records& records, const std::string& boot_id);
/// kInvalid for a text that is damaged or of a newer version; kGone for one of another boot.
base::Result<Records> from_text(std::string_view text, const std::string& boot_id);

class RecordFile {
 public:
  /// `directory` must exist.
  RecordFile(const std::filesystem::path& directory, std::string boot_id)
      : path_(directory / "quiet.json"), boot_id_(std::move(boot_id)) {}

  const std::filesystem::path& path() const { return path_; }
  /// Empty where there is no file, or one of another boot, whose masks the kernel has not.
  base::Result<Records> load() const;
  /// Removes the file where there is nothing to record.
  base::Result<void> save(const Records& records) const;

 private:
  std::filesystem::path path_;
  std::string boot_id_;
};

}  // namespace ka::helper
