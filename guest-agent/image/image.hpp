// SPDX-License-Identifier: Apache-2.0
// Guest images of Kata Containers: finding the agent, and adding it. An image is never modified:
// a new one is made beside it, whole or not at all.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace ka::image {

/// What an image is.
struct Report {
  enum class Kind {
    kInitrd,
    kDisk,       ///< a disk whose root has systemd, which starts the agent
    kPlainDisk,  ///< a disk whose root has none: kata-agent is its first program
    kExtension,  ///< a read-only disk (EROFS), as Kata 4's guest_extension_images are
  };
  Kind kind = Kind::kInitrd;
  std::string agent;      ///< the version of the agent in it; empty: there is none
  bool measured = false;  ///< dm-verity protects it
};

/// "initrd", "disk", "disk without systemd", "extension".
std::string kind_name(Report::Kind kind);

/// kInvalid, with the reason: it is no guest image, truncated, or damaged. kUnavailable:
/// a program that reads it is not installed. kPermission: it is xfs, which only root may mount.
base::Result<Report> check_image(const std::filesystem::path& image);

/// Makes `made` of `image`, with the agent of the file `agent` in it. Also kInvalid: dm-verity
/// protects the image, or its file system is read-only; the message names the alternative.
base::Result<Report> add_agent(const std::filesystem::path& image,
                               const std::filesystem::path& made,
                               const std::filesystem::path& agent);

/// Makes an extension image with the agent (kata-containers, docs/design/composable-vm-images.md):
/// EROFS in the first partition, and, when it is to be measured, dm-verity's hashes in the second.
/// What comes back is the `verity_params` of its entry in configuration.toml; empty where it is not
/// measured. kUnavailable: mkfs.erofs or veritysetup is not installed.
base::Result<std::string> make_extension(const std::filesystem::path& made,
                                         const std::filesystem::path& agent, bool measured);

}  // namespace ka::image
