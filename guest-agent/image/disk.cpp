// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/image/disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "base/fd.hpp"
#include "guest-agent/image/dos_partitions.hpp"

namespace ka::image {
namespace {

using base::ErrorCode;
using base::Result;
using FileSystem = Disk::FileSystem;

constexpr std::uint8_t kGptType = 0xee;

std::uint64_t little(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | static_cast<std::uint8_t>(bytes[i - 1]);
  }
  return value;
}

struct Partition {
  std::uint8_t type = 0;
  std::uint64_t begin = 0;  ///< in bytes
  std::uint64_t size = 0;
};

Partition partition(std::string_view sector, std::size_t number) {
  const std::string_view entry =
      sector.substr(kPartitionTable + number * kPartitionEntry, kPartitionEntry);
  return {static_cast<std::uint8_t>(entry[4]), kSector * little(entry.substr(8, 4)),
          kSector * little(entry.substr(12, 4))};
}

/// By the magic numbers in its first 4 KiB.
FileSystem file_system_of(std::string_view begin) {
  if (begin.size() < 2048) return FileSystem::kUnknown;
  if (begin.substr(1024 + 0x38, 2) == "\x53\xef") return FileSystem::kExt4;
  if (begin.starts_with("XFSB")) return FileSystem::kXfs;
  if (begin.substr(1024, 4) == "\xe2\xe1\xf5\xe0") return FileSystem::kErofs;
  return FileSystem::kUnknown;
}

class Image {
 public:
  explicit Image(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

  bool good() const { return static_cast<bool>(fd_); }
  std::uint64_t size() const {
    struct stat status{};
    return ::fstat(fd_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  }
  /// At most 4 KiB.
  std::string at(std::uint64_t offset) const {
    std::string bytes(4096, '\0');
    const ssize_t got = ::pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }

 private:
  base::Fd fd_;
};

auto invalid(std::string_view text) { return base::fail(ErrorCode::kInvalid, text); }

/// The file system fits its partition.
Result<void> check_size(std::string_view begin, FileSystem file_system, std::uint64_t room) {
  if (file_system != FileSystem::kExt4) return {};
  const std::string_view super = begin.substr(1024);
  const std::uint64_t shift = little(super.substr(0x18, 4));
  const std::uint64_t blocks = little(super.substr(0x04, 4));
  if (shift > 6) return invalid("its ext4 file system is damaged");
  if (blocks << (10 + shift) > room) return invalid("truncated: its file system is larger");
  return {};
}

Result<Disk> finish(const Image& image, Disk disk, std::uint64_t room) {
  const std::string begin = image.at(disk.offset);
  disk.file_system = file_system_of(begin);
  if (auto whole = check_size(begin, disk.file_system, room); !whole) {
    return unexpected(whole.error());
  }
  return disk;
}

}  // namespace

Result<Disk> read_disk(const std::filesystem::path& path) {
  const Image image(path);
  if (!image.good()) return base::fail_errno(errno, path.native());
  const std::string first = image.at(0);
  const std::uint64_t size = image.size();
  if (file_system_of(first) != FileSystem::kUnknown) return finish(image, Disk{}, size);
  if (first.size() < kSector || little(std::string_view(first).substr(510, 2)) != 0xaa55) {
    return invalid("neither an initrd nor a disk image");
  }
  const Partition root = partition(first, 0);
  if (root.type == kGptType) {
    return invalid("GUID partition table; Kata's images have a DOS partition table");
  }
  if (root.begin == 0 || root.size == 0) return invalid("no first partition");
  if (root.begin + root.size > size) return invalid("truncated: its first partition is larger");
  const Disk disk{.offset = root.begin, .has_hashes = partition(first, 1).size != 0};
  return finish(image, disk, root.size);
}

}  // namespace ka::image
