// SPDX-License-Identifier: Apache-2.0
#include "base/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/descriptors.hpp"
#include "base/uninterrupted.hpp"

namespace ka::base {
namespace {

Result<std::string> read_all(int fd, std::size_t limit, const std::string& name) {
  std::string text;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t got = uninterrupted([&] { return ::read(fd, chunk.data(), chunk.size()); });
    if (got < 0) return fail_errno(errno, name);
    if (got == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
    if (text.size() > limit) {
      return fail(ErrorCode::kInvalid, name + ": larger than " + std::to_string(limit) + " bytes");
    }
  }
}

Result<void> write_all(int fd, std::string_view text, const std::string& name) {
  while (!text.empty()) {
    const ssize_t put = uninterrupted([&] { return ::write(fd, text.data(), text.size()); });
    if (put < 0) return fail_errno(errno, name);
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

/// A temporary file that disappears unless it was renamed. Its name is fixed: a file has one
/// writer, and what a crash left behind is overwritten; a FIFO of others there is an error. It is
/// hidden from programs that read all files of the directory (kubelet's manifests, NFD's features).
class Temporary {
 public:
  Temporary(const std::filesystem::path& target, mode_t mode)
      : path_(hidden(target).native() + ".new"),
        fd_(open_file(path_, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, mode)) {
    if (fd_) ::fchmod(fd_.get(), mode);  // whatever the umask
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (fd_) ::unlink(path_.c_str());
  }

  const Fd& fd() const { return fd_; }
  Result<void> rename_to(const std::filesystem::path& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) return fail_errno(errno, target.string());
    fd_.reset();
    return {};
  }

 private:
  static std::filesystem::path hidden(const std::filesystem::path& target) {
    const std::string name = target.filename();
    return name.starts_with('.') ? target : target.parent_path() / ('.' + name);
  }

  std::string path_;
  Fd fd_;
};

/// Calls `visit` for each entry of an open directory that was not read from before. Not readdir(3):
/// its 32 KiB buffer on the heap costs more than the threads of a VMM.
template <typename Visit>
Result<void> visit_entries(int directory, Visit visit) {
  alignas(dirent64) std::array<char, 8192> buffer;
  for (;;) {
    const ssize_t filled =
        uninterrupted([&] { return ::getdents64(directory, buffer.data(), buffer.size()); });
    if (filled < 0) return fail_errno(errno, "listing a directory");
    if (filled == 0) return {};
    for (ssize_t at = 0; at < filled;) {
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): getdents64(2)
      const auto* entry = reinterpret_cast<const dirent64*>(&buffer[static_cast<std::size_t>(at)]);
      visit(std::string_view(entry->d_name), entry->d_type);
      at += entry->d_reclen;
    }
  }
}

/// Not every file system tells the type with the name.
bool is_subdirectory(int directory, std::string_view name, unsigned char type) {
  if (name == "." || name == "..") return false;
  if (type != DT_UNKNOWN) return type == DT_DIR;
  struct stat status{};
  return ::fstatat(directory, std::string(name).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(status.st_mode);
}

/// The names of the entries that `is_wanted` wants, sorted.
template <typename IsWanted>
Result<std::vector<std::string>> list_entries(const std::filesystem::path& path,
                                              IsWanted is_wanted) {
  const auto directory = open_directory(path);
  if (!directory) return unexpected(directory.error());
  std::vector<std::string> names;
  auto done = visit_entries(directory->get(), [&](std::string_view name, unsigned char type) {
    if (is_wanted(directory->get(), name, type)) names.emplace_back(name);
  });
  if (!done) return fail_errno(done.error().number, path.string());
  std::ranges::sort(names);
  return names;
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit) {
  const Fd fd = open_file(path, O_RDONLY);
  if (!fd) return fail_errno(errno, path.string());
  return read_all(fd.get(), limit, path.string());
}

Result<std::string> read_regular_file(const std::filesystem::path& path, std::size_t limit) {
  const Fd fd = open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return fail_errno(errno, path.string());
  struct stat found{};
  if (::fstat(fd.get(), &found) != 0) return fail_errno(errno, path.string());
  if (!S_ISREG(found.st_mode)) {
    return fail(ErrorCode::kInvalid, path.string() + ": is not a regular file");
  }
  return read_all(fd.get(), limit, path.string());
}

Result<std::string_view> read_record(const std::filesystem::path& path, std::span<char> buffer) {
  const Fd fd = open_file(path, O_RDONLY);
  if (!fd) return fail_errno(errno, path.string());
  const ssize_t size =
      uninterrupted([&] { return ::read(fd.get(), buffer.data(), buffer.size()); });
  if (size < 0) return fail_errno(errno, path.string());
  return std::string_view(buffer.data(), static_cast<std::size_t>(size));
}

Result<void> write_kernel_file(const std::filesystem::path& path, const std::string& text) {
  const Fd fd = open_file(path, O_WRONLY | O_TRUNC);
  if (!fd) return fail_errno(errno, path.string());
  if (::write(fd.get(), text.data(), text.size()) < 0) return fail_errno(errno, path.string());
  return {};
}

Result<void> write_atomically(const std::filesystem::path& path, const std::string& text,
                              mode_t mode) {
  Temporary temporary(path, mode);
  if (!temporary.fd()) return fail_errno(errno, path.string());
  if (auto done = write_all(temporary.fd().get(), text, path.string()); !done) return done;
  return temporary.rename_to(path);
}

Result<Fd> lock_file(const std::filesystem::path& path) {
  Fd fd = open_file(path, O_RDWR | O_CREAT, 0600);
  if (!fd) return fail_errno(errno, "cannot open " + path.string());
  if (uninterrupted([&] { return ::flock(fd.get(), LOCK_EX | LOCK_NB); }) == 0) return fd;
  if (errno != EWOULDBLOCK) return fail_errno(errno, "cannot lock " + path.string());
  return fail(ErrorCode::kConflict, path.string() + " is locked by another process");
}

Result<Fd> open_directory(const std::filesystem::path& path) {
  Fd fd = open_file(path, O_RDONLY | O_DIRECTORY);
  if (!fd) return fail_errno(errno, path.string());
  return fd;
}

Result<std::vector<std::string>> list_directory(const std::filesystem::path& path) {
  return list_entries(
      path, [](int, std::string_view name, unsigned char) { return name != "." && name != ".."; });
}

Result<std::vector<std::string>> list_subdirectories(const std::filesystem::path& path) {
  return list_entries(path, is_subdirectory);
}

Result<std::vector<int>> list_numbers(const std::filesystem::path& path) {
  const auto directory = open_directory(path);
  if (!directory) return unexpected(directory.error());
  return list_numbers_at(directory->get());
}

Result<std::vector<int>> list_numbers_at(int directory) {
  std::vector<int> numbers;
  auto done = visit_entries(directory, [&numbers](std::string_view name, unsigned char) {
    int value = 0;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    if (error == std::errc{} && stop == name.data() + name.size()) numbers.push_back(value);
  });
  if (!done) return unexpected(std::move(done.error()));
  std::ranges::sort(numbers);
  return numbers;
}

Result<std::string> read_link(const std::filesystem::path& path) {
  std::array<char, 4096> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return fail_errno(errno, path.string());
  return std::string(target.data(), static_cast<std::size_t>(length));
}

Result<long long> parse_number(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  long long value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size()) {
    return fail(ErrorCode::kInvalid, "not a number: \"" + std::string(text.substr(0, 40)) + '"');
  }
  return value;
}

}  // namespace ka::base
