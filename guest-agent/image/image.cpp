// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/image/image.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "base/files.hpp"
#include "guest-agent/image/contents.hpp"
#include "guest-agent/image/disk.hpp"
#include "guest-agent/image/initrd.hpp"
#include "guest-agent/image/work_directory.hpp"

namespace ka::image {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;
using FileSystem = Disk::FileSystem;

constexpr std::size_t kMostInitrd = std::size_t{1} << 30;
constexpr std::size_t kMostExtension = std::size_t{1} << 30;

constexpr const char* kOtherWay =
    "; leave it as it is and add an extension image (kata-affinityctl guest-image extension)";

auto naming(const fs::path& image, const base::Error& error) {
  return unexpected(base::error_in(image.native(), error));
}

auto refuse(const std::string& why) { return base::fail(ErrorCode::kInvalid, why + kOtherWay); }

Result<bool> begins_as_initrd(const fs::path& image) {
  const base::Fd fd(::open(image.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return base::fail_errno(errno, "cannot open");
  std::string begin(16, '\0');
  const ssize_t got = ::read(fd.get(), begin.data(), begin.size());
  if (got < 0) return base::fail_errno(errno, "cannot read");
  begin.resize(static_cast<std::size_t>(got));
  return is_initrd(begin);
}

Result<Report> inspect_initrd(const fs::path& image) {
  const auto bytes = base::read_file(image, kMostInitrd);
  if (!bytes) return unexpected(bytes.error());
  auto initrd = read_initrd(*bytes);
  if (!initrd) return unexpected(initrd.error());
  return Report{Report::Kind::kInitrd, std::move(initrd->agent), false};
}

/// External programs interpret some characters of file names, so they are given a
/// name of ours.
Result<Report> inspect_root(const fs::path& image, const Disk& disk) {
  const WorkDirectory work(fs::temp_directory_path());
  if (!work.good()) return unexpected(work.error());
  const fs::path link = work.path() / "image";
  fs::create_symlink(fs::absolute(image), link);
  auto contents = disk.file_system == FileSystem::kXfs ? read_xfs(link, disk.offset)
                                                       : read_ext4(link, disk.offset);
  if (!contents) return unexpected(contents.error());
  const Report::Kind kind = contents->systemd ? Report::Kind::kDisk : Report::Kind::kPlainDisk;
  return Report{kind, std::move(contents->agent), disk.has_hashes};
}

/// EROFS that is not compressed, as ours is, has the program in one piece.
Result<Report> inspect_erofs(const fs::path& image, const Disk& disk) {
  const auto bytes = base::read_file(image, kMostExtension);
  if (!bytes) return unexpected(bytes.error());
  return Report{Report::Kind::kExtension, agent_version(*bytes), disk.has_hashes};
}

Result<Report> inspect_disk(const fs::path& image) {
  const auto disk = read_disk(image);
  if (!disk) return unexpected(disk.error());
  switch (disk->file_system) {
    case FileSystem::kExt4:
    case FileSystem::kXfs:
      return inspect_root(image, *disk);
    case FileSystem::kErofs:
      return inspect_erofs(image, *disk);
    case FileSystem::kUnknown:
      break;
  }
  return base::fail(ErrorCode::kInvalid, "unknown file system in its first partition");
}

Result<Report> inspect(const fs::path& image) {
  const auto initrd = begins_as_initrd(image);
  if (!initrd) return unexpected(initrd.error());
  return *initrd ? inspect_initrd(image) : inspect_disk(image);
}

Result<Report> make_initrd(const fs::path& image, const fs::path& made, std::string agent) {
  auto bytes = base::read_file(image, kMostInitrd);
  if (!bytes) return unexpected(bytes.error());
  Report report{Report::Kind::kInitrd, agent_version(agent), false};
  const auto whole = add_to_initrd(std::move(*bytes), std::move(agent));
  if (!whole) return unexpected(whole.error());
  const auto written = base::write_atomically(made, *whole, kImageMode);
  if (!written) return unexpected(written.error());
  return report;
}

Result<Disk> changeable_disk(const fs::path& image) {
  auto disk = read_disk(image);
  if (!disk) return disk;
  if (disk->has_hashes) return refuse("protected by dm-verity, which rejects a changed image");
  switch (disk->file_system) {
    case FileSystem::kExt4:
    case FileSystem::kXfs:
      return disk;
    case FileSystem::kErofs:
      return refuse("its file system is EROFS, which is read-only");
    case FileSystem::kUnknown:
      break;
  }
  return base::fail(ErrorCode::kInvalid, "unknown file system in its first partition");
}

Result<Report> make_disk(const fs::path& image, const fs::path& made, const std::string& agent) {
  const auto disk = changeable_disk(image);
  if (!disk) return unexpected(disk.error());
  const WorkDirectory work(fs::absolute(made).parent_path());
  if (!work.good()) return unexpected(work.error());
  const fs::path copy = work.path() / "image";
  std::error_code wrong;
  fs::copy_file(image, copy, wrong);
  if (wrong) return base::fail_errno(wrong.value(), "cannot copy");
  fs::permissions(copy, static_cast<fs::perms>(kImageMode), wrong);
  const auto added = disk->file_system == FileSystem::kXfs ? add_to_xfs(copy, disk->offset, agent)
                                                           : add_to_ext4(copy, disk->offset, agent);
  if (!added) return unexpected(added.error());
  auto report = inspect_root(copy, *disk);
  if (!report) return report;
  fs::rename(copy, made, wrong);
  if (wrong) return base::fail_errno(wrong.value(), made.native());
  return report;
}

}  // namespace

std::string kind_name(Report::Kind kind) {
  switch (kind) {
    case Report::Kind::kInitrd:
      return "initrd";
    case Report::Kind::kDisk:
      return "disk";
    case Report::Kind::kPlainDisk:
      return "disk without systemd";
    case Report::Kind::kExtension:
      break;
  }
  return "extension";
}

Result<Report> check_image(const fs::path& image) {
  auto report = inspect(image);
  if (!report) return naming(image, report.error());
  return report;
}

Result<Report> add_agent(const fs::path& image, const fs::path& made, const fs::path& agent) {
  auto program = read_agent(agent);
  if (!program) return unexpected(program.error());
  const auto initrd = begins_as_initrd(image);
  if (!initrd) return naming(image, initrd.error());
  auto report =
      *initrd ? make_initrd(image, made, std::move(*program)) : make_disk(image, made, *program);
  if (!report) return naming(image, report.error());
  return report;
}

}  // namespace ka::image
