// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/interrupt_files.hpp"

#include <sstream>
#include <string>
#include <system_error>

#include "base/files.hpp"
#include "base/newline.hpp"

namespace ka::cli::noise {
namespace {

namespace fs = std::filesystem;

/// Since then the file of an interrupt that nobody may move cannot be written (register_irq_proc()
/// in kernel/irq/proc.c); before, the file of each could.
constexpr std::pair kFileModeSince(6, 13);

bool has_file_mode(const fs::path& proc) {
  int major = 0, minor = 0;
  char dot = 0;
  std::istringstream release(base::read_file(proc / "sys/kernel/osrelease").value_or(""));
  release >> major >> dot >> minor;
  return !release.fail() && std::pair(major, minor) >= kFileModeSince;
}

policy::CpuSet read_list(const fs::path& file) {
  const auto text = base::read_file(file);
  if (!text) return {};
  return policy::parse_list<policy::CpuTag>(base::without_newline(*text))
      .value_or(policy::CpuSet{});
}

}  // namespace

std::optional<InterruptFacts> InterruptFiles::read(int number) const {
  const fs::path directory = proc_ / "irq" / std::to_string(number);
  std::error_code unreadable;
  const fs::file_status status = fs::status(directory / "smp_affinity_list", unreadable);
  if (!fs::exists(status)) return std::nullopt;
  return InterruptFacts{is_movable(number, status.permissions()),
                        read_list(directory / "effective_affinity_list")};
}

/// The kernel's debug files name the flag (CONFIG_GENERIC_IRQ_DEBUGFS; kernel/irq/debugfs.c).
std::optional<bool> InterruptFiles::is_movable(int number, fs::perms permissions) const {
  if ((permissions & fs::perms::owner_write) == fs::perms::none) return false;
  if (has_file_mode(proc_)) return true;
  const auto flags = base::read_file(debugfs_ / "irq/irqs" / std::to_string(number));
  if (!flags) return std::nullopt;
  return flags->find("IRQD_AFFINITY_MANAGED") == std::string::npos;
}

}  // namespace ka::cli::noise
