// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/kata/kata_config.hpp"

#include <algorithm>
#include <utility>

#include "affinity/config/files.hpp"
#include "base/files.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;

template <typename T>
const T* find_value(const config::Entries& entries, const KeyPath& path) {
  const auto found = entries.find(path);
  return found == entries.end() ? nullptr : std::get_if<T>(&found->second.value);
}

constexpr const char* kOurType = "io.containerd.kata-affinity.";

/// The value of "plugins.*.containerd.runtimes.NAME.runtime_type", in each version of containerd's
/// format; empty for any other key.
std::string runtime_type(const KeyPath& path, const config::Value& value) {
  const auto* type = std::get_if<std::string>(&value);
  const bool is_one = type != nullptr && path.size() >= 3 && path.back() == "runtime_type" &&
                      path[path.size() - 3] == "runtimes";
  return is_one ? *type : std::string();
}

KataHandler handler_at(const config::Entries& entries, KeyPath path) {
  KataHandler handler{path[path.size() - 2], text_at(entries, path), {}};
  path.back() = "options";
  path.emplace_back("ConfigPath");
  handler.config_path = text_at(entries, path);
  return handler;
}

void add_handlers(const config::Entries& entries, Containerd& containerd) {
  for (const auto& [path, entry] : entries) {
    const std::string type = runtime_type(path, entry.value);
    if (type.starts_with(kOurType)) {
      containerd.proxied.push_back(path[path.size() - 2]);
    } else if (type.starts_with("io.containerd.kata")) {
      containerd.handlers.push_back(handler_at(entries, path));
    }
  }
}

bool imports_conf_d(const config::Entries& entries) {
  const auto* imports = find_value<std::vector<std::string>>(entries, {"imports"});
  return imports != nullptr && std::ranges::any_of(*imports, [](const std::string& pattern) {
           return pattern == "/etc/containerd/conf.d/*.toml" || pattern == "conf.d/*.toml";
         });
}

base::Result<config::Entries> read_entries(const fs::path& file) {
  const auto text = base::read_regular_file(file);
  if (!text) return unexpected(text.error());
  return config::parse_whole(*text, file);
}

void add_imported_handlers(const fs::path& folder, Containerd& containerd) {
  const auto names = base::list_directory(folder);
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (!name.ends_with(".toml")) continue;
    if (const auto entries = read_entries(folder / name)) add_handlers(*entries, containerd);
  }
}

}  // namespace

std::optional<bool> flag_at(const config::Entries& entries, const KeyPath& path) {
  const auto* flag = find_value<bool>(entries, path);
  return flag == nullptr ? std::nullopt : std::optional(*flag);
}

std::string text_at(const config::Entries& entries, const KeyPath& path) {
  const auto* text = find_value<std::string>(entries, path);
  return text == nullptr ? std::string() : *text;
}

std::vector<double> hypervisor_numbers(const config::Entries& entries, const std::string& key) {
  std::vector<double> numbers;
  for (const auto& [path, entry] : entries) {
    if (path.size() != 3 || path[0] != "hypervisor" || path[2] != key) continue;
    if (const auto* whole = std::get_if<std::int64_t>(&entry.value)) {
      numbers.push_back(static_cast<double>(*whole));
    } else if (const auto* real = std::get_if<double>(&entry.value)) {
      numbers.push_back(*real);
    }
  }
  return numbers;
}

base::Result<config::Entries> read_merged(const fs::path& main) {
  auto files = config::drop_ins(main);
  if (!files) return unexpected(files.error());
  files->insert(files->begin(), main);
  config::Entries merged;
  for (const fs::path& file : *files) {
    auto entries = read_entries(file);
    if (!entries) return unexpected(entries.error());
    for (auto& [path, entry] : *entries) merged.insert_or_assign(path, std::move(entry));
  }
  return merged;
}

base::Result<Containerd> read_containerd(const fs::path& root) {
  const fs::path folder = root / "etc/containerd";
  const auto entries = read_entries(folder / "config.toml");
  if (!entries) return unexpected(entries.error());
  Containerd found;
  if (const auto* version = find_value<std::int64_t>(*entries, {"version"})) {
    found.version = static_cast<int>(*version);
  }
  found.imports_conf_d = imports_conf_d(*entries);
  add_handlers(*entries, found);
  if (found.imports_conf_d) add_imported_handlers(folder / "conf.d", found);
  return found;
}

std::vector<fs::path> find_kata(const fs::path& root) {
  std::vector<fs::path> wanted;
  if (const auto containerd = read_containerd(root)) {
    for (const KataHandler& handler : containerd->handlers) {
      const fs::path path = handler.config_path;
      if (path.is_absolute()) wanted.push_back(root / path.relative_path());
    }
  }
  const auto standard = config::candidates(root);
  wanted.insert(wanted.end(), standard.begin(), standard.end());
  std::vector<fs::path> found;
  for (const fs::path& path : wanted) {
    std::error_code absent;
    const fs::path real = fs::canonical(path, absent);
    if (!absent && std::ranges::find(found, real) == found.end()) found.push_back(real);
  }
  return found;
}

std::optional<config::Entries> read_affinity(const fs::path& root) {
  for (const fs::path& file : find_kata(root)) {
    auto entries = read_merged(file);
    const auto is_ours = [](const auto& entry) { return entry.first.front() == "affinity"; };
    if (entries && std::ranges::any_of(*entries, is_ours)) return std::move(*entries);
  }
  return std::nullopt;
}

}  // namespace ka::cli
