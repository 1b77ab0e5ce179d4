// SPDX-License-Identifier: Apache-2.0
// A disk image as Kata's osbuilder makes it: a DOS partition table, the root file system in the
// first partition, dm-verity's hashes in the second where there are any
// (kata-containers, tools/osbuilder/image-builder/image_builder.sh).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace ka::image {

struct Disk {
  enum class FileSystem { kExt4, kXfs, kErofs, kUnknown };
  FileSystem file_system = FileSystem::kUnknown;
  std::uint64_t offset = 0;  ///< where it begins, in bytes
  bool has_hashes = false;   ///< dm-verity protects it
};

/// Reads what kind of disk it is. kInvalid: it is none, or cut off.
base::Result<Disk> read_disk(const std::filesystem::path& image);

/// The relevant content of a root file system.
struct Contents {
  std::string agent;     ///< the version of the agent; empty: there is none
  bool systemd = false;  ///< it starts the agent by its unit
};

/// Of the ext4 at `offset`. kInvalid: damaged; kUnavailable: debugfs of e2fsprogs is not installed.
base::Result<Contents> read_ext4(const std::filesystem::path& image, std::uint64_t offset);

/// Puts the agent into the ext4 of `image` and reads it back; `image` is no use after a failure.
/// The file system is checked before; read_ext4() checks what was made.
base::Result<void> add_to_ext4(const std::filesystem::path& image, std::uint64_t offset,
                               const std::string& agent);

/// The same of an xfs, which is mounted for that: kPermission for anyone but root; kInvalid:
/// damaged, or unknown to the kernel. The process has a mount namespace of its own afterwards.
base::Result<Contents> read_xfs(const std::filesystem::path& image, std::uint64_t offset);
base::Result<void> add_to_xfs(const std::filesystem::path& image, std::uint64_t offset,
                              const std::string& agent);

}  // namespace ka::image
