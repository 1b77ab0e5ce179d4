// SPDX-License-Identifier: Apache-2.0
// The checksum of kubelet's checkpoint files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ka::watch {

/// The CPU manager's checkpoint, all versions in one shape. Sets of CPUs are kubelet's own text.
struct Checkpoint {
  std::string policy;
  std::string shared_pool;
  std::map<std::string, std::string> by_container;                   ///< version 1: by id
  std::map<std::string, std::map<std::string, std::string>> by_pod;  ///< since 2: by uid and name
  std::map<std::string, std::string> pods;                           ///< since 3: by uid
};

/// Versions 1 to 3: FNV-1a over what the spew library prints of the Go structure. kubelet's
/// releases call the structure by several names, and since version 3 it has pod entries also where
/// the file shows none. 0 fits always: kubelet takes it for "none".
bool checksum_fits(const Checkpoint& checkpoint, std::uint64_t checksum);

/// Version 4: the same over a text.
bool checksum_fits(std::string_view data, std::uint64_t checksum);

}  // namespace ka::watch
