// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/interrupts.hpp"

#include <optional>
#include <utility>

#include "affinity/helper/mask_files.hpp"
#include "base/files.hpp"
#include "base/newline.hpp"
#include "base/text.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;

/// Names of its handlers, separated by commas (actions_show() in kernel/irq/irqdesc.c). Empty: it
/// has none, and never comes.
std::string handlers(const Roots& roots, const std::string& number) {
  auto text = base::read_file(roots.sys / "kernel/irq" / number / "actions");
  return text ? base::printable(base::without_newline(*std::move(text)), kMostTitle) : "";
}

bool is_of_vfio(const std::string& actions) { return actions.find("vfio-") != std::string::npos; }

std::filesystem::path file_of(const Roots& roots, const std::string& number) {
  return roots.proc / "irq" / number / "smp_affinity_list";
}

/// Another handler may have the number later.
std::string name_of(const std::string& number, const std::string& actions) {
  return number + ' ' + actions;
}

std::optional<HostMask> read_one(const Roots& roots, const std::string& number) {
  const std::string actions = handlers(roots, number);
  if (actions.empty() || is_of_vfio(actions)) return std::nullopt;
  auto cpus = read_cpus(file_of(roots, number), SetFormat::kList);
  if (!cpus) return std::nullopt;
  const std::string name = name_of(number, actions);
  return HostMask{name, "IRQ " + name, *std::move(cpus), {}};
}

}  // namespace

Result<std::vector<HostMask>> Interrupts::read() const {
  const auto numbers = base::list_numbers(roots_.proc / "irq");
  if (!numbers) return unexpected(numbers.error());
  std::vector<HostMask> masks;
  for (const int number : *numbers) {
    if (auto mask = read_one(roots_, std::to_string(number))) masks.push_back(*std::move(mask));
  }
  return masks;
}

Result<void> Interrupts::write(const HostMask& mask, const policy::CpuSet& cpus) const {
  const std::string number = mask.name.substr(0, mask.name.find(' '));
  if (name_of(number, handlers(roots_, number)) != mask.name) {
    return base::fail(ErrorCode::kGone, mask.title + " is gone");
  }
  return write_cpus(file_of(roots_, number), SetFormat::kList, cpus);
}

Result<std::vector<HostMask>> NewInterrupts::read() const {
  auto cpus = read_cpus(file_, SetFormat::kMask);
  if (!cpus) return unexpected(cpus.error());
  return std::vector<HostMask>{{"default", "interrupts to come", *std::move(cpus), {}}};
}

Result<void> NewInterrupts::write(const HostMask& /*mask*/, const policy::CpuSet& cpus) const {
  return write_cpus(file_, SetFormat::kMask, cpus);
}

}  // namespace ka::helper
