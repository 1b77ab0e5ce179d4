// SPDX-License-Identifier: Apache-2.0
#include "affinity/config/files.hpp"

#include <string>

#include "base/files.hpp"

namespace ka::config {

namespace fs = std::filesystem;

namespace {

/// Where kata-deploy puts the files that it hands to each shim:
/// runtimes/<shim>/configuration-<shim>.toml.
std::vector<fs::path> deployed(const fs::path& runtimes) {
  std::vector<fs::path> files;
  const auto shims = base::list_directory(runtimes);
  if (!shims) return files;
  for (const std::string& shim : *shims) {
    files.push_back(runtimes / shim / ("configuration-" + shim + ".toml"));
  }
  return files;
}

}  // namespace

std::vector<fs::path> candidates(const fs::path& root) {
  std::vector<fs::path> files;
  for (const char* directory : {"etc/kata-containers", "usr/share/defaults/kata-containers",
                                "opt/kata/share/defaults/kata-containers"}) {
    files.push_back(root / directory / "runtime-rs" / "configuration.toml");
    files.push_back(root / directory / "configuration.toml");
  }
  const auto more = deployed(root / "opt/kata/share/defaults/kata-containers/runtimes");
  files.insert(files.end(), more.begin(), more.end());
  return files;
}

base::Result<std::vector<fs::path>> drop_ins(const fs::path& main) {
  std::error_code wrong;
  const fs::path real = fs::canonical(main, wrong);
  if (wrong) return base::fail_errno(wrong.value(), main.string());
  const fs::path directory = real.parent_path() / "config.d";
  const auto names = base::list_directory(directory);
  if (!names && names.error().code == base::ErrorCode::kGone) return std::vector<fs::path>{};
  if (!names) return unexpected(names.error());
  std::vector<fs::path> files;
  for (const std::string& name : *names) {
    if (!fs::is_directory(directory / name, wrong)) files.push_back(directory / name);
  }
  return files;
}

}  // namespace ka::config
