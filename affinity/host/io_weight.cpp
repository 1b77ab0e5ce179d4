// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/io_weight.hpp"

#include <cerrno>
#include <string>
#include <string_view>

#include "base/files.hpp"

namespace ka::host {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;

constexpr std::string_view kDefault = "default ";

bool is_there(const fs::path& file) {
  std::error_code unreadable;
  return fs::exists(file, unreadable);
}

/// Every cgroup with the io controller has io.stat; without an option of the kernel's none has the
/// file.
base::Error why_none(const fs::path& directory, const char* file_and_option) {
  if (!is_there(directory)) return base::system_error(ENOENT, directory);
  const std::string why = is_there(directory / "io.stat")
                              ? std::string("this kernel has no ") + file_and_option
                              : "the io controller is not enabled for its cgroup";
  return {ErrorCode::kUnavailable, why, 0};
}

/// Its first line is "default 100".
base::Result<int> parse(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const auto weight = base::parse_number(line.substr(line.starts_with(kDefault) ? 8 : 0));
  if (!weight) return base::fail(ErrorCode::kInternal, "io.weight: " + std::string(line));
  return static_cast<int>(*weight);
}

}  // namespace

base::Result<int> read_io_weight(const fs::path& directory) {
  const auto text = base::read_file(directory / "io.weight");
  if (text) return parse(*text);
  if (is_gone(text)) {
    return unexpected(why_none(directory, "io.weight (CONFIG_BLK_CGROUP_IOCOST)"));
  }
  return unexpected(text.error());
}

base::Result<policy::IoLimits> read_io_max(const fs::path& directory) {
  const auto text = base::read_file(directory / "io.max");
  if (is_gone(text)) {
    return unexpected(why_none(directory, "io.max (CONFIG_BLK_DEV_THROTTLING)"));
  }
  if (!text) return unexpected(text.error());
  auto limits = policy::parse_io_limits(*text, '\n');
  if (!limits) return base::fail(ErrorCode::kInternal, "io.max: " + *text);
  return *std::move(limits);
}

bool has_io_controller(const fs::path& directory) {
  fs::path top = directory;
  while (is_there(top.parent_path() / "cgroup.controllers")) top = top.parent_path();
  const auto text = base::read_file(top / "cgroup.controllers");
  return text && (' ' + *text).find(" io") != std::string::npos;
}

}  // namespace ka::host
