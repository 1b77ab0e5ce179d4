#include "guest-agent/host/boot.hpp"

#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

namespace ka::guest {
namespace {

/// The number at the beginning of `text`, which is taken off.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// "4,maxcpus=8", "cpus=4,...", "boot=4,max=8".
std::optional<int> cold_vcpus(std::string_view list, std::string_view key) {
  for (bool first = true; !list.empty(); first = false) {
    std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(part.size() + 1, list.size()));
    if (part.starts_with(key)) {
      part.remove_prefix(key.size());
    } else if (!first) {
      continue;
    }
    const auto number = take_number(part);
    if (number && part.empty()) return number;
  }
  return std::nullopt;
}

/// Of "vmlinux-6.12.36-157" or "vmlinuz-6.12.36": at least 6.10.
bool numbers_at_boot(const std::string& kernel) {
  std::error_code none;
  const auto real = std::filesystem::weakly_canonical(kernel, none);
  const std::string name = real.filename().native();
  std::string_view rest = name;
  if (!rest.starts_with("vmlinux-") && !rest.starts_with("vmlinuz-")) return false;
  rest.remove_prefix(8);
  const auto major = take_number(rest);
  if (!major || !rest.starts_with('.')) return false;
  rest.remove_prefix(1);
  const auto minor = take_number(rest);
  return minor && (*major > 6 || (*major == 6 && *minor >= 10));
}

}  // namespace

policy::BootFacts boot_facts(const std::vector<std::string>& command_line) {
  policy::BootFacts boot;
  if (command_line.empty()) return boot;
  boot.plugs_none = std::filesystem::path(command_line.front()).filename() == "firecracker";
  for (std::size_t i = 0; i + 1 < command_line.size(); ++i) {
    const std::string& name = command_line[i];
    const std::string& value = command_line[i + 1];
    if (name == "-smp") boot.cold_vcpus = cold_vcpus(value, "cpus=");
    if (name == "--cpus") boot.cold_vcpus = cold_vcpus(value, "boot=");
    if (name == "-kernel" || name == "--kernel") boot.numbers_at_boot = numbers_at_boot(value);
  }
  return boot;
}

}  // namespace ka::guest
