// SPDX-License-Identifier: Apache-2.0
#include "affinity/config/files.hpp"

#include <cerrno>
#include <string>

#include "affinity/config/handlers.hpp"
#include "base/files.hpp"

namespace ka::config {

namespace fs = std::filesystem;

namespace {

constexpr const char* kRelease = "opt/kata/share/defaults/kata-containers";

std::vector<std::string> names_in(const fs::path& directory, base::Trouble& unseen) {
  auto names = base::list_directory(directory);
  if (names) return *std::move(names);
  if (names.error().number != ENOTDIR) unseen.record(names.error());
  return {};
}

void add_standard(const fs::path& directory, std::vector<fs::path>& files) {
  files.push_back(directory / "runtime-rs/configuration.toml");
  files.push_back(directory / "configuration.toml");
}

/// The directory of each shim or custom runtime holds one configuration-<shim>.toml.
void add_deployed(const fs::path& runtimes, std::vector<fs::path>& files, base::Trouble& unseen) {
  for (const std::string& runtime : names_in(runtimes, unseen)) {
    for (const std::string& name : names_in(runtimes / runtime, unseen)) {
      if (name.starts_with("configuration") && name.ends_with(".toml")) {
        files.push_back(runtimes / runtime / name);
      }
    }
  }
}

/// kata-deploy's installations: /opt/kata, then those with a suffix (MULTI_INSTALL_SUFFIX).
std::vector<fs::path> installations(const fs::path& root, base::Trouble& unseen) {
  std::vector<fs::path> found;
  for (const std::string& name : names_in(root / "opt", unseen)) {
    if (name == "kata" || name.starts_with("kata-")) {
      found.push_back(root / "opt" / name / "share/defaults/kata-containers");
    }
  }
  return found;
}

}  // namespace

std::vector<fs::path> candidates(const fs::path& root, base::Trouble& unseen) {
  std::vector<fs::path> files = standard(root);
  for (const fs::path& defaults : installations(root, unseen)) {
    if (defaults != root / kRelease) add_standard(defaults, files);
    for (const char* runtimes : {"runtime-rs/runtimes", "runtimes", "custom-runtimes"}) {
      add_deployed(defaults / runtimes, files, unseen);
    }
  }
  for (const Handler& handler : read_handlers(root, unseen)) {
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
