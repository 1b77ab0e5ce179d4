// SPDX-License-Identifier: Apache-2.0
#include "affinity/config/files.hpp"

#include <string>

#include "affinity/config/handlers.hpp"
#include "base/files.hpp"

namespace ka::config {

namespace fs = std::filesystem;

namespace {

constexpr const char* kRelease = "opt/kata/share/defaults/kata-containers";

std::vector<std::string> names_in(const fs::path& directory) {
  return base::list_directory(directory).value_or(std::vector<std::string>{});
}

void add_standard(const fs::path& directory, std::vector<fs::path>& files) {
  files.push_back(directory / "runtime-rs/configuration.toml");
  files.push_back(directory / "configuration.toml");
}

/// The directory of each shim or custom runtime holds one configuration-<shim>.toml.
void add_deployed(const fs::path& runtimes, std::vector<fs::path>& files) {
  for (const std::string& runtime : names_in(runtimes)) {
    for (const std::string& name : names_in(runtimes / runtime)) {
      if (name.starts_with("configuration") && name.ends_with(".toml")) {
        files.push_back(runtimes / runtime / name);
      }
    }
  }
}

/// kata-deploy's installations: /opt/kata, then those with a suffix (MULTI_INSTALL_SUFFIX).
std::vector<fs::path> installations(const fs::path& root) {
  std::vector<fs::path> found;
  for (const std::string& name : names_in(root / "opt")) {
    if (name == "kata" || name.starts_with("kata-")) {
      found.push_back(root / "opt" / name / "share/defaults/kata-containers");
    }
  }
  return found;
}

}  // namespace

std::vector<fs::path> candidates(const fs::path& root) {
  std::vector<fs::path> files = standard(root);
  for (const fs::path& defaults : installations(root)) {
    if (defaults != root / kRelease) add_standard(defaults, files);
    for (const char* runtimes : {"runtime-rs/runtimes", "runtimes", "custom-runtimes"}) {
      add_deployed(defaults / runtimes, files);
    }
  }
  for (const Handler& handler : read_handlers(root)) {
    if (handler.config.is_absolute()) files.push_back(root / handler.config.relative_path());
  }
  return files;
}

std::vector<fs::path> standard(const fs::path& root) {
  std::vector<fs::path> files;
  for (const char* directory :
       {"etc/kata-containers", "usr/share/defaults/kata-containers", kRelease}) {
    add_standard(root / directory, files);
  }
  return files;
}

base::Result<std::vector<fs::path>> drop_ins(const fs::path& main) {
  std::error_code wrong;
  const fs::path real = fs::canonical(main, wrong);
  if (wrong) return base::fail_errno(wrong.value(), main.string());
  const fs::path directory = real.parent_path() / "config.d";
  const auto names = base::list_directory(directory);
  if (is_gone(names)) return std::vector<fs::path>{};
  if (!names) return unexpected(names.error());
  std::vector<fs::path> files;
  for (const std::string& name : *names) {
    if (!fs::is_directory(directory / name, wrong)) files.push_back(directory / name);
  }
  return files;
}

}  // namespace ka::config
