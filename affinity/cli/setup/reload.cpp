// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/setup/reload.hpp"

#include <array>
#include <filesystem>
#include <string>

#include "base/program.hpp"

namespace ka::cli {
namespace {

constexpr const char* kUnit = "kata-affinityd.service";
/// systemd itself gives a reload 90 s.
constexpr std::chrono::minutes kLimit{2};

base::Result<base::Ended> systemctl(const std::filesystem::path& program, const char* verb) {
  return base::run_program({.file = program,
                            .words = {"systemctl", verb, kUnit},
                            .catches_errors = true,
                            .wait_limit = base::WaitLimit::of(kLimit)});
}

}  // namespace

base::Result<bool> reload_daemon() {
  static const std::array<std::filesystem::path, 2> kDirectories{"/usr/bin", "/bin"};
  const auto program = base::find_program("systemctl", kDirectories);
  if (!program) return false;
  const auto active = systemctl(*program, "is-active");
  if (!active || active->status != 0) return false;
  const auto reloaded = systemctl(*program, "reload");
  if (!reloaded) return unexpected(reloaded.error());
  if (reloaded->status == 0) return true;
  return base::fail(base::ErrorCode::kInternal,
                    "kata-affinityd was not reloaded: " + reloaded->errors);
}

}  // namespace ka::cli
