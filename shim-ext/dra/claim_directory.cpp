// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/dra/claim_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/files.hpp"
#include "shim-ext/dra/cdi_file.hpp"

namespace ka::dra {
namespace {

using base::ErrorCode;
using base::Fd;
using base::Result;

Result<struct stat> stat_of(const Fd& fd, const std::string& name) {
  struct stat found{};
  if (::fstat(fd.get(), &found) != 0) return base::fail_errno(errno, name);
  return found;
}

/// A file that a tenant could write proves nothing.
Result<void> check_owner(const struct stat& found, const std::string& name) {
  constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
  const bool is_ours = found.st_uid == 0 || found.st_uid == ::geteuid();
  if (is_ours && (found.st_mode & kOthersWrite) == 0) return {};
  return base::fail(ErrorCode::kInvalid, name + ": writable by users other than root");
}

Result<Fd> open_trusted(const std::filesystem::path& path) {
  Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return base::fail_errno(errno, path.native());
  const auto found = stat_of(directory, path.native());
  if (!found) return unexpected(found.error());
  if (auto good = check_owner(*found, path.native()); !good) return unexpected(good.error());
  return directory;
}

watch::Stamp stamp_of(const struct stat& found) {
  return {found.st_dev, found.st_ino, found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_size};
}

Result<std::string> read_text(const Fd& fd, const std::string& name) {
  std::string text(kMaxCdiFile + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::fail_errno(errno, name);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kMaxCdiFile) return base::fail(ErrorCode::kInvalid, name + ": too large");
  text.resize(size);
  return text;
}

/// A FIFO or a device does not block, and is refused.
Result<policy::ledger::PreparedClaim> read_claim(int directory, const std::string& name,
                                                 const std::string& uid) {
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const Fd file(::openat(directory, name.c_str(), kFlags));
  if (!file) return base::fail_errno(errno, name);
  const auto found = stat_of(file, name);
  if (!found) return unexpected(found.error());
  if (!S_ISREG(found->st_mode)) return base::fail(ErrorCode::kInvalid, name + ": no regular file");
  if (auto good = check_owner(*found, name); !good) return unexpected(good.error());
  const auto text = read_text(file, name);
  if (!text) return unexpected(text.error());
  auto claim = parse_cdi_file(*text, uid);
  if (!claim) return unexpected(base::error_in(name, claim.error()));
  return claim;
}

}  // namespace

Result<void> ClaimDirectory::read() {
  const auto directory = open_trusted(path_);
  if (!directory) {
    if (is_gone(directory)) files_.clear();
    return unexpected(directory.error());
  }
  const auto names = base::list_directory(path_);
  if (!names) return unexpected(names.error());
  std::erase_if(files_,
                [&](const auto& file) { return !std::ranges::binary_search(*names, file.first); });
  for (const std::string& name : *names) {
    const std::string uid(claim_of_name(name));
    const bool has_room = files_.size() < kMaxClaims || files_.contains(name);
    if (!uid.empty() && has_room) read_file(directory->get(), name, uid);
  }
  return {};
}

/// A file that is replaced has another inode; what cannot be seen of it is read again.
void ClaimDirectory::read_file(int directory, const std::string& name, const std::string& uid) {
  struct stat found{};
  const bool seen = ::fstatat(directory, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
  if (!seen && errno == ENOENT) {
    files_.erase(name);
    return;
  }
  const watch::Stamp stamp = seen ? stamp_of(found) : watch::Stamp{};
  const auto [entry, added] = files_.try_emplace(name);
  File& file = entry->second;
  if (!added && seen && std::exchange(file.stamp, stamp) == stamp) return;
  file.stamp = stamp;
  auto claim = read_claim(directory, name, uid);
  file.problem = claim ? std::string() : claim.error().message;
  if (claim) file.claim = std::move(*claim);
}

std::vector<policy::ledger::PreparedClaim> ClaimDirectory::claims() const {
  std::vector<policy::ledger::PreparedClaim> list;
  for (const auto& [name, file] : files_) {
    if (file.claim) list.push_back(*file.claim);
  }
  std::ranges::sort(list);
  return list;
}

std::vector<std::string> ClaimDirectory::problems() const {
  std::vector<std::string> list;
  for (const auto& [name, file] : files_) {
    if (!file.problem.empty()) list.push_back(file.problem);
  }
  return list;
}

}  // namespace ka::dra
