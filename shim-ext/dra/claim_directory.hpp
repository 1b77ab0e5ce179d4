// SPDX-License-Identifier: Apache-2.0
// The directory of CDI files, which other drivers share: what dra-driver-cpu has prepared.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "policy/ledger/event.hpp"
#include "shim-ext/watch/stamp.hpp"

namespace ka::dra {

/// Files that are followed; there are no more claims on CPUs than CPUs.
inline constexpr std::size_t kMaxClaims = 16384;

class ClaimDirectory {
 public:
  explicit ClaimDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  /// Reads the files that are new or have changed. The directory and each file must be root's (or
  /// this process's user's) and writable by nobody else, a file regular; symbolic links are not
  /// followed. A file that is no good is in problems(); its claim, where it was read before, stays
  /// until the file goes. kGone: there is no such directory, and no claim. Other errors: it cannot
  /// be seen what is prepared.
  base::Result<void> read();

  /// As read() left them, sorted.
  std::vector<policy::ledger::PreparedClaim> claims() const;
  /// "file: reason", one for each file that is no good.
  std::vector<std::string> problems() const;

 private:
  struct File {
    watch::Stamp stamp;
    std::optional<policy::ledger::PreparedClaim> claim;
    std::string problem;
  };

  void read_file(int directory, const std::string& name, const std::string& uid);

  std::filesystem::path path_;
  std::map<std::string, File> files_;  ///< by name
};

}  // namespace ka::dra
