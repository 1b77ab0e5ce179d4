// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/kata/guest_agent.hpp"

#include "base/files.hpp"

namespace ka::cli {

base::Result<std::filesystem::path> find_guest_agent() {
  const auto self = base::read_link("/proc/self/exe");
  if (!self) return unexpected(self.error());
  const std::filesystem::path here = std::filesystem::path(*self).parent_path();
  std::filesystem::path file = here.parent_path() / "lib/kata-affinity/guest/kata-affinity-agent";
  std::error_code none;
  if (std::filesystem::exists(file, none)) return file;
  return base::fail(base::ErrorCode::kNotFound,
                    file.native() + " not found: reinstall the package kata-affinity");
}

}  // namespace ka::cli
