// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/doctor/kubelet_gate.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "affinity/cli/doctor/checkup.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

Arguments kubelet_arguments(const fs::path& root) {
  for (const fs::path& process : processes_of(root, "kubelet")) {
    const auto pid = base::parse_number(process.filename().native());
    const auto arguments = base::ProcFs(root / "proc").cmdline(static_cast<int>(pid.value_or(0)));
    if (arguments) return *arguments;
  }
  return {};
}

/// "--config=FILE" or "--config FILE", each time that it is given.
Arguments values_of(const Arguments& arguments, const std::string& flag) {
  Arguments values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with(flag + '='))
      values.push_back(arguments[i].substr(flag.size() + 1));
    if (arguments[i] == flag && i + 1 < arguments.size()) values.push_back(arguments[i + 1]);
  }
  return values;
}

std::string_view without_start(std::string_view text, std::string_view skipped) {
  text.remove_prefix(std::min(text.find_first_not_of(skipped), text.size()));
  return text;
}

/// In YAML, JSON, and the list of a flag: "NAME: false", "\"NAME\":false", "NAME=false".
std::optional<bool> value_after(std::string_view text) {
  text = without_start(text, "\"' \t");
  if (!text.starts_with(':') && !text.starts_with('=')) return std::nullopt;
  text = without_start(text.substr(1), "\"' \t");
  if (text.starts_with("false")) return false;
  return text.starts_with("true") ? std::optional(true) : std::nullopt;
}

/// The last one counts.
std::optional<bool> gate_in(std::string_view text, std::string_view name) {
  std::optional<bool> gate;
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::string_view before = text.substr(0, at);
    const std::string_view line = before.substr(before.rfind('\n') + 1);
    const auto value = value_after(text.substr(at + name.size()));
    if (value && line.find('#') == std::string_view::npos) gate = value;
  }
  return gate;
}

/// Its configuration, and its drop-ins by name (kubelet reads "*.conf").
std::vector<fs::path> files_of(const fs::path& root, const Arguments& arguments) {
  const Arguments config = values_of(arguments, "--config");
  const fs::path file = config.empty() ? "var/lib/kubelet/config.yaml" : config.back();
  std::vector<fs::path> files{root / file.relative_path()};
  for (const std::string& folder : values_of(arguments, "--config-dir")) {
    const fs::path directory = root / fs::path(folder).relative_path();
    Arguments names = base::list_directory(directory).value_or(Arguments{});
    std::ranges::sort(names);
    for (const std::string& name : names) {
      if (name.ends_with(".conf")) files.push_back(directory / name);
    }
  }
  return files;
}

}  // namespace

std::optional<bool> kubelet_gate(const fs::path& root, std::string_view name) {
  const Arguments arguments = kubelet_arguments(root);
  std::optional<bool> gate;
  const auto read = [&](const std::string& text) {
    if (const auto value = gate_in(text, name)) gate = value;
  };
  for (const fs::path& file : files_of(root, arguments)) {
    read(base::read_regular_file(file).value_or(""));
  }
  for (const std::string& list : values_of(arguments, "--feature-gates")) read(list);
  return gate;
}

}  // namespace ka::cli
