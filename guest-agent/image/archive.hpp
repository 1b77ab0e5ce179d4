// SPDX-License-Identifier: Apache-2.0
// cpio archives of the format "newc", the format of an initramfs (Linux,
// Documentation/driver-api/early-userspace/buffer-format.rst).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "guest-agent/image/contents.hpp"

namespace ka::image {

/// An entry of an archive.
struct Member {
  std::string_view name;
  std::string_view data;
  std::uint32_t mode = 0;  ///< with the file's type
  std::uint32_t inode = 0;
};

/// Whether an archive begins here.
bool is_archive(std::string_view bytes);

/// Takes one whole archive off `bytes`, with its trailer. kInvalid: it is cut off or damaged.
base::Result<std::vector<Member>> read_archive(std::string_view& bytes);

/// Packs items, in their order. What is hard-linked carries its data with the first name.
std::string pack(const std::vector<Item>& items);

}  // namespace ka::image
