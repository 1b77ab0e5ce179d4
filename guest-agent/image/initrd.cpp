// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/image/initrd.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "guest-agent/image/archive.hpp"
#include "guest-agent/image/contents.hpp"
#include "guest-agent/image/program.hpp"

namespace ka::image {
namespace {

using base::ErrorCode;
using base::Result;

constexpr std::size_t kMostUnpacked = std::size_t{2} << 30;

/// How Linux knows what an initramfs is compressed with (lib/decompress.c), and who unpacks it.
struct Packer {
  std::string_view magic;
  const char* program;
};
constexpr std::array kPackers{
    Packer{"\x1f\x8b", "gzip"},
    Packer{"BZh", "bzip2"},
    Packer{std::string_view("\x5d\0\0", 3), "xz"},
    Packer{std::string_view("\xfd\x37zXZ\0", 6), "xz"},
    Packer{"\x89LZO", "lzop"},
    Packer{"\x02\x21L\x18", "lz4"},
    Packer{"\x28\xb5\x2f\xfd", "zstd"},
};

/// The last entry of what we append has the image's original length.
constexpr std::string_view kMark = "usr/libexec/kata-affinity/image-before";

const Packer* packer_of(std::string_view bytes) {
  const auto found = std::ranges::find_if(
      kPackers, [bytes](const Packer& packer) { return bytes.starts_with(packer.magic); });
  return found == kPackers.end() ? nullptr : &*found;
}

std::string version_in(const std::vector<Member>& members) {
  std::string version;
  for (const Member& member : members) {
    if (member.data.empty() || !member.name.ends_with("/kata-affinity-agent")) continue;
    version = agent_version(member.data);
  }
  return version;
}

std::size_t aligned(std::size_t size) { return size + (4 - size % 4) % 4; }

/// How long the image was before our archive was appended, by that one's mark; absent where there
/// is none.
std::optional<std::size_t> size_before(std::string_view bytes) {
  const std::size_t mark = bytes.rfind(std::string(kMark) + '\0');
  if (mark == std::string_view::npos) return std::nullopt;
  // The name is padded to where the data begins, as everything in an archive is.
  std::string_view data = bytes.substr(mark + kMark.size());
  data.remove_prefix(std::min(data.find_first_not_of('\0'), data.size()));
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(data.data(), data.data() + data.size(), size);
  if (error != std::errc{} || size >= mark) return std::nullopt;
  std::string_view ours = bytes.substr(aligned(size));
  const auto members = read_archive(ours);
  if (!members || members->empty() || members->back().name != kMark) return std::nullopt;
  return size;
}

Result<std::string> unpack(std::string_view bytes, const Packer& packer) {
  auto ended = run(
      {.words = {packer.program, "-dc"}, .directory = {}, .input = bytes, .most = kMostUnpacked});
  if (!ended) return unexpected(ended.error());
  if (ended->status == 0) return std::move(ended->out);
  return base::fail(ErrorCode::kInvalid, "truncated or damaged: " + ended->input_error());
}

/// Reads archive after archive; the version of the last agent in them. `depth`: how often it was
/// unpacked to get here.
Result<std::string> read_parts(std::string_view bytes, int depth = 0) {
  constexpr int kDeepest = 4;
  if (depth > kDeepest) return base::fail(ErrorCode::kInvalid, "too many layers of compression");
  std::string version;
  const auto see = [&version](const std::vector<Member>& members) {
    std::string found = version_in(members);
    if (!found.empty()) version = std::move(found);
  };
  while (!bytes.empty()) {
    if (is_archive(bytes)) {
      const auto members = read_archive(bytes);
      if (!members) return unexpected(members.error());
      see(*members);
    } else if (bytes.front() == '\0') {
      bytes.remove_prefix(std::min(bytes.find_first_not_of('\0'), bytes.size()));
    } else if (const Packer* packer = packer_of(bytes)) {
      const auto unpacked = unpack(bytes, *packer);
      if (!unpacked) return unexpected(unpacked.error());
      if (!is_archive(*unpacked)) {
        return base::fail(ErrorCode::kInvalid, "no cpio archive in it");
      }
      auto inner = read_parts(*unpacked, depth + 1);
      if (!inner) return inner;
      // Its end is unknown; everything that follows belongs to it.
      return inner->empty() ? std::move(version) : std::move(*inner);
    } else {
      return base::fail(ErrorCode::kInvalid, "damaged: data after an archive is not an archive");
    }
  }
  return version;
}

}  // namespace

bool is_initrd(std::string_view bytes) { return is_archive(bytes) || packer_of(bytes) != nullptr; }

Result<Initrd> read_initrd(std::string_view bytes) {
  const auto before = size_before(bytes);
  auto agent = read_parts(bytes.substr(0, before.value_or(bytes.size())));
  if (!agent) return unexpected(agent.error());
  if (!before) return Initrd{bytes.size(), std::move(*agent)};
  std::string_view ours = bytes.substr(aligned(*before));
  return Initrd{*before, version_in(*read_archive(ours))};
}

Result<std::string> add_to_initrd(std::string image, std::string agent) {
  const auto before = read_initrd(image);
  if (!before) return unexpected(before.error());
  auto items = files_of_root(std::move(agent));
  items.push_back(
      {Item::Kind::kFile, std::string(kMark), 0644, std::to_string(before->base) + '\n'});
  image.resize(before->base);
  // An archive begins at a multiple of four.
  image.resize(aligned(image.size()), '\0');
  return image += pack(items);
}

}  // namespace ka::image
