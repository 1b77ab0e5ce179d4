// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/host/kernel_image.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/fd.hpp"

namespace ka::guest {
namespace {

constexpr std::size_t kLongest = 64;  ///< of a release: utsname's fields have 65 bytes
constexpr off_t kScanned = off_t{64} << 20;
constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr std::string_view kBanner = "Linux version ";

/// Not a pipe or a device, which could block or do something.
base::Fd open_regular(const std::filesystem::path& image) {
  std::error_code error;
  const auto real = std::filesystem::canonical(image, error);
  if (error || !std::filesystem::is_regular_file(real, error)) return {};
  base::Fd file(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return file;
}

/// Less than `size` bytes only at the end of the file.
std::string read_at(const base::Fd& file, off_t from, std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t filled = 0;
  while (filled < size) {
    const ssize_t got = ::pread(file.get(), bytes.data() + filled, size - filled,
                                from + static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

/// The word at the beginning, when it begins as a release does.
std::string release_at(std::string_view text) {
  text = text.substr(0, std::min(text.find_first_of(std::string_view(" \n\0", 3)), kLongest));
  const bool is_release = !text.empty() && text.front() >= '0' && text.front() <= '9' &&
                          std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
  return std::string(is_release ? text : std::string_view());
}

/// Offsets of the real-mode header: "HdrS" at 0x202, at 0x20e where the text is, less 0x200.
std::string release_of_bzimage(const base::Fd& file) {
  const std::string header = read_at(file, 0x200, 0x10);
  if (header.size() < 0x10 || header.compare(2, 4, "HdrS") != 0) return {};
  const auto low = static_cast<unsigned char>(header[0xe]);
  const auto high = static_cast<unsigned char>(header[0xf]);
  const off_t offset = low + (off_t{high} << 8);
  return offset == 0 ? std::string() : release_at(read_at(file, offset + 0x200, kLongest + 1));
}

/// In its format strings the kernel has the same words, but no number behind them.
std::string banner_in(std::string_view bytes) {
  for (auto at = bytes.find(kBanner); at != std::string_view::npos;
       at = bytes.find(kBanner, at + 1)) {
    std::string release = release_at(bytes.substr(at + kBanner.size()));
    if (!release.empty()) return release;
  }
  return {};
}

std::string release_of_elf(const base::Fd& file) {
  if (read_at(file, 0, 4) != "\177ELF") return {};
  constexpr std::size_t kOverlap = kBanner.size() + kLongest;
  for (off_t from = 0; from < kScanned; from += static_cast<off_t>(kChunk)) {
    const std::string bytes = read_at(file, from, kChunk + kOverlap);
    if (std::string release = banner_in(bytes); !release.empty()) return release;
    if (bytes.size() < kChunk) break;
  }
  return {};
}

}  // namespace

std::string kernel_release(const std::filesystem::path& image) {
  const base::Fd file = open_regular(image);
  if (!file) return {};
  std::string release = release_of_bzimage(file);
  return release.empty() ? release_of_elf(file) : release;
}

}  // namespace ka::guest
