// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/kata/kata_config.hpp"

#include <algorithm>
#include <utility>

#include "affinity/config/files.hpp"
#include "affinity/config/handlers.hpp"
#include "base/files.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;

template <typename T>
const T* find_value(const config::Entries& entries, const KeyPath& path) {
  const auto found = entries.find(path);
  return found == entries.end() ? nullptr : std::get_if<T>(&found->second.value);
}

base::Result<config::Entries> read_entries(const fs::path& file) {
  const auto text = base::read_regular_file(file);
  if (!text) return unexpected(text.error());
  return config::parse_whole(*text, file);
}

/// The file itself; empty: it is not there.
fs::path real_path(const fs::path& file) {
  std::error_code absent;
  fs::path real = fs::canonical(file, absent);
  return absent ? fs::path() : real;
}

fs::path first_present(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) {
    if (fs::path real = real_path(file); !real.empty()) return real;
  }
  return {};
}

/// The file that Kata reads for a handler.
fs::path config_of(const config::Handler& handler, const fs::path& root) {
  if (handler.config.is_absolute()) return real_path(root / handler.config.relative_path());
  return first_present(config::standard(root));
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

std::vector<fs::path> find_kata(const fs::path& root) {
  std::vector<fs::path> found;
  base::Trouble ignored;
  for (const fs::path& path : config::candidates(root, ignored)) {
    fs::path real = real_path(path);
    const bool known = std::ranges::find(found, real) != found.end();
    if (!real.empty() && !known) found.push_back(std::move(real));
  }
  return found;
}

std::vector<Installation> find_installations(const fs::path& root) {
  std::vector<Installation> installations;
  for (fs::path& file : find_kata(root)) installations.push_back({std::move(file), {}});
  base::Trouble ignored;
  for (const config::Handler& handler : config::read_handlers(root, ignored)) {
    const auto used =
        std::ranges::find(installations, config_of(handler, root), &Installation::config);
    if (used != installations.end()) used->handlers.push_back(handler.name);
  }
  return installations;
}

fs::path overriding(const config::Entries& merged, const KeyPath& key, const fs::path& main) {
  const auto set = merged.find(key);
  if (set == merged.end()) return {};
  const fs::path& file = set->second.key_at.file;
  const fs::path ours = main.parent_path() / kSetupDropIn;
  const bool later = file.parent_path() == ours.parent_path() && file.filename() > ours.filename();
  return later ? file : fs::path();
}

bool is_rust(const fs::path& config) {
  const std::string name = config.filename().native();
  return config.native().find("runtime-rs") != std::string::npos ||
         name.find("dragonball") != std::string::npos ||
         name.find("cloud-hypervisor") != std::string::npos;
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
