// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/image/archive.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

namespace ka::image {
namespace {

using base::ErrorCode;

constexpr std::string_view kMagic = "070701";
constexpr std::string_view kMagicWithSums = "070702";
constexpr std::string_view kTrailer = "TRAILER!!!";
/// The magic, and thirteen numbers of eight hexadecimal digits.
constexpr std::size_t kHeader = 110;
constexpr std::uint32_t kLongestName = 4096;

/// The numbers of a header by their place.
enum Field : std::size_t { kInode = 0, kMode = 1, kSize = 6, kNameSize = 11, kFields = 13 };
using Numbers = std::array<std::uint32_t, kFields>;

bool read_numbers(std::string_view header, Numbers& numbers) {
  for (std::size_t i = 0; i < kFields; ++i) {
    const char* begin = header.data() + kMagic.size() + 8 * i;
    const auto [end, error] = std::from_chars(begin, begin + 8, numbers[i], 16);
    if (error != std::errc{} || end != begin + 8) return false;
  }
  return true;
}

/// Takes `size` bytes, and those up to the next multiple of four (counted in `taken`).
bool read(std::string_view& rest, std::size_t size, std::size_t& offset, std::string_view& bytes) {
  const std::size_t padding = (4 - (offset + size) % 4) % 4;
  if (size > rest.size() || padding > rest.size() - size) return false;
  bytes = rest.substr(0, size);
  rest.remove_prefix(size + padding);
  offset += size + padding;
  return true;
}

bool read_member(std::string_view& rest, Member& member) {
  Numbers numbers{};
  if (!is_archive(rest) || rest.size() < kHeader || !read_numbers(rest, numbers)) return false;
  rest.remove_prefix(kHeader);
  std::size_t offset = kHeader;
  if (numbers[kNameSize] == 0 || numbers[kNameSize] > kLongestName) return false;
  std::string_view name;
  if (!read(rest, numbers[kNameSize], offset, name)) return false;
  if (name.find('\0') != name.size() - 1) return false;
  name.remove_suffix(1);
  member = {name, {}, numbers[kMode], numbers[kInode]};
  return read(rest, numbers[kSize], offset, member.data);
}

std::uint32_t mode_of(const Item& item) {
  switch (item.kind) {
    case Item::Kind::kDirectory:
      return 0040000 | item.mode;
    case Item::Kind::kLink:
      return 0120000 | item.mode;
    case Item::Kind::kFile:
    case Item::Kind::kHardLink:
      break;
  }
  return 0100000 | item.mode;
}

void pad(std::string& out) { out.append((4 - out.size() % 4) % 4, '\0'); }

void append(std::string& out, std::string_view name, std::uint32_t inode, std::uint32_t mode,
            std::uint32_t links, std::string_view data) {
  out += fmt::format(
      "{}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}", kMagic,
      inode, mode, 0, 0, links, 0, data.size(), 0, 0, 0, 0, name.size() + 1, 0);
  out += name;
  out += '\0';
  pad(out);
  out += data;
  pad(out);
}

}  // namespace

bool is_archive(std::string_view bytes) {
  return bytes.starts_with(kMagic) || bytes.starts_with(kMagicWithSums);
}

base::Result<std::vector<Member>> read_archive(std::string_view& bytes) {
  std::vector<Member> members;
  for (;;) {
    Member member;
    if (!read_member(bytes, member)) {
      return base::fail(ErrorCode::kInvalid, "its cpio archive is truncated or damaged");
    }
    if (member.name == kTrailer && member.data.empty()) return members;
    members.push_back(member);
  }
}

std::string pack(const std::vector<Item>& items) {
  std::map<std::string_view, std::uint32_t> links;
  for (const Item& item : items) {
    if (item.kind == Item::Kind::kHardLink) ++links[item.data];
  }
  std::map<std::string_view, std::uint32_t> inodes;
  std::string out;
  for (const Item& item : items) {
    const bool is_link = item.kind == Item::Kind::kHardLink;
    const auto inode = static_cast<std::uint32_t>(inodes.size() + 1);
    inodes[item.path] = is_link ? inodes[item.data] : inode;
    const std::uint32_t names = 1 + links[is_link ? std::string_view(item.data) : item.path];
    append(out, item.path, inodes[item.path], mode_of(item), names,
           is_link ? std::string_view() : item.data);
  }
  append(out, kTrailer, 0, 0, 1, {});
  return out;
}

}  // namespace ka::image
