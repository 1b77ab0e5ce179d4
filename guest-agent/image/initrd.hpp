// SPDX-License-Identifier: Apache-2.0
// An initramfs: archives one after the other, each as it is or compressed, with zeros between them.
// The kernel unpacks them in their order, so an image is changed by appending to it; the
// rest of it stays as it is, byte for byte.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ka::image {

/// Whether these are the first bytes of an initramfs.
bool is_initrd(std::string_view bytes);

struct Initrd {
  std::size_t base = 0;  ///< how much of it there was before an agent was put in
  std::string agent;     ///< the version of that; empty: there is none
};

/// Reads all of it, which unpacks what is compressed. kInvalid: it is cut off or damaged;
/// kUnavailable: the program that unpacks it is not installed.
base::Result<Initrd> read_initrd(std::string_view bytes);

/// `image` with an agent behind it, in place of one that was put there before.
base::Result<std::string> add_to_initrd(std::string image, std::string agent);

}  // namespace ka::image
