// A disk image as Kata's osbuilder makes it: a DOS partition table, the root file system in the
// first partition, dm-verity's hashes in the second where there are any
// (kata-containers, tools/osbuilder/image-builder/image_builder.sh).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "affinity/base/result.hpp"

namespace ka::image {

struct Disk {
  enum class FileSystem { kExt4, kXfs, kErofs, kUnknown };
  FileSystem file_system = FileSystem::kUnknown;
  std::uint64_t offset = 0;  ///< where it begins, in bytes
  bool has_hashes = false;   ///< dm-verity protects it
};

/// "ext4", "xfs", "erofs", "unknown".
std::string file_system_name(Disk::FileSystem file_system);

/// Reads what kind of disk it is. kInvalid: it is none, or cut off.
base::Result<Disk> read_disk(const std::filesystem::path& image);

/// The version of the agent in the ext4 at `offset`; empty: there is none. kInvalid: damaged;
/// kUnavailable: debugfs of e2fsprogs is not installed.
base::Result<std::string> agent_in_ext4(const std::filesystem::path& image, std::uint64_t offset);

/// Whether the root in that ext4 has systemd, which starts the agent by its unit.
base::Result<bool> has_systemd(const std::filesystem::path& image, std::uint64_t offset);

/// Puts the agent into the ext4 of `image` and reads it back; `image` is no use after a failure.
/// The file system is checked before; agent_in_ext4() checks what was made.
base::Result<void> add_to_ext4(const std::filesystem::path& image, std::uint64_t offset,
                               const std::string& agent);

}  // namespace ka::image
