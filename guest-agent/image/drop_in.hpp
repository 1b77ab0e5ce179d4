// SPDX-License-Identifier: Apache-2.0
// The file beside Kata's configuration.toml that lets Kata start VMs with the agent. Kata merges it
// over its own file, key by key (config.d, in name order); its own file is never written.
#pragma once

#include <string>

#include "base/result.hpp"
#include "guest-agent/image/image.hpp"

namespace ka::image {

inline constexpr const char* kDropInName = "config.d/60-kata-affinity-guest.toml";
inline constexpr const char* kExtensionName = "kata-affinity";

/// Kata's configuration without the drop-in, in its table [hypervisor.NAME].
struct KataSettings {
  std::string hypervisor = "qemu";
  std::string kernel_params;
  std::string kernel_verity_params;
  std::string guest_hook_path;
};

/// The image to use.
struct Use {
  Report::Kind kind = Report::Kind::kInitrd;
  std::string path;           ///< of the image, absolute
  std::string verity_params;  ///< kExtension
};

/// Whether a text is a drop-in of ours.
bool is_drop_in(const std::string& text);

/// Its text. kConflict: Kata's settings are in the way, and the message names them.
base::Result<std::string> drop_in(const KataSettings& kata, const Use& use);

}  // namespace ka::image
