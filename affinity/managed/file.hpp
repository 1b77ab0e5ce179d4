// SPDX-License-Identifier: Apache-2.0
// The allocations of the node on disk, for the next daemon: one JSON file beside the pods' state
// files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "policy/managed/books.hpp"

namespace ka::managed {

/// Its name in the state directory.
inline constexpr std::string_view kFile = "allocations";
/// 16384 containers with 3 KiB each stay below it.
inline constexpr std::size_t kMaxFile = std::size_t{64} << 20;

/// The text form, with the boot that it belongs to.
std::string to_text(const std::vector<policy::managed::Saved>& saved, const std::string& boot_id);

/// kInvalid for a text that is damaged or of a newer version; kGone for one of another boot.
base::Result<std::vector<policy::managed::Saved>> from_text(std::string_view text,
                                                            const std::string& boot_id);

class AllocationFile {
 public:
  AllocationFile(const std::filesystem::path& directory, std::string boot_id)
      : path_(directory / kFile), boot_id_(std::move(boot_id)) {}

  /// Empty where there is no file, or one of another boot. What is damaged is renamed to
  /// "allocations.unreadable" and kInvalid.
  base::Result<std::vector<policy::managed::Saved>> load();
  /// Writes nothing when the file has that already. kUnavailable while there is a file that could
  /// not be read: it may be whole, and is not overwritten.
  base::Result<void> save(const std::vector<policy::managed::Saved>& saved);
  /// There is none any more; one that cannot be removed is read again by the next daemon.
  void remove();

 private:
  std::filesystem::path path_;
  std::string boot_id_;
  std::optional<std::string> written_;
  bool unread_ = false;
};

}  // namespace ka::managed
