#include "affinity/config/config.hpp"

#include <utility>

#include "affinity/base/files.hpp"
#include "affinity/config/check.hpp"
#include "affinity/config/entries.hpp"
#include "affinity/config/keys.hpp"
#include "affinity/words/settings.hpp"

namespace ka::config {
namespace {

namespace fs = std::filesystem;

/// Checked values, with the defaults behind them.
class Values {
 public:
  /// Of one handler; of the node for an empty name.
  Values(const Entries& entries, std::string handler)
      : entries_(entries), handler_(std::move(handler)) {}

  bool flag(const std::string& name) const {
    const Value* value = find(name);
    return value == nullptr ? find_key(name)->fallback == "true" : std::get<bool>(*value);
  }
  std::string text(const std::string& name) const {
    const Value* value = find(name);
    return value == nullptr ? std::string(find_key(name)->fallback) : std::get<std::string>(*value);
  }
  std::chrono::seconds seconds(const std::string& name) const {
    const Value* value = find(name);
    if (value != nullptr) return std::chrono::seconds(std::get<std::int64_t>(*value));
    return std::chrono::seconds(*base::parse_number(find_key(name)->fallback));
  }

 private:
  const Value* find(const std::string& name) const {
    const auto own = entries_.find({"handler", handler_, name});
    if (own != entries_.end()) return &own->second.value;
    const auto shared = entries_.find({name});
    return shared == entries_.end() ? nullptr : &shared->second.value;
  }

  const Entries& entries_;
  std::string handler_;
};

policy::Settings make_settings(const Values& values) {
  policy::Settings settings;
  settings.vcpu_pinning = *words::parse_vcpu_pinning(values.text("vcpu_pinning"));
  settings.housekeeping = *words::parse_housekeeping(values.text("housekeeping"));
  for (const policy::Role role : words::kHousekeepingRoles) {
    const std::string text = values.text(std::string(policy::role_name(role)));
    if (!text.empty()) settings.overrides[role] = *words::parse_housekeeping(text);
  }
  return settings;
}

/// Precondition: the entries were checked.
Config make_config(const Entries& entries) {
  const Values values(entries, "");
  Config config;
  config.enable = values.flag("enable");
  config.mode = values.text("mode") == "observe" ? Mode::kObserve : Mode::kFollow;
  config.defaults = make_settings(values);
  for (const auto& [path, entry] : entries) {
    if (path.size() == 3) config.by_handler[path[1]] = make_settings(Values(entries, path[1]));
  }
  config.metrics_listen = values.text("metrics_listen");
  config.log_level = *base::parse_log_level(values.text("log_level"));
  config.state_dir = values.text("state_dir");
  config.kubelet_state = values.text("kubelet_state");
  config.nri_socket = values.text("nri_socket");
  config.drift_check = values.seconds("drift_check");
  config.real_shim = values.text("real_shim");
  return config;
}

/// A main file and its drop-ins, merged.
struct Merged {
  bool has_affinity = false;
  Entries entries;
  std::vector<fs::path> files;
};

base::Result<void> merge(const fs::path& file, Merged& into) {
  const auto text = base::read_file(file);
  if (!text) return unexpected(text.error());
  auto entries = parse_toml(*text, file);
  if (!entries) return unexpected(std::move(entries.error()));
  into.files.push_back(file);
  if (!*entries) return {};
  into.has_affinity = true;
  for (auto& [path, entry] : **entries) into.entries.insert_or_assign(path, std::move(entry));
  return {};
}

/// The files of config.d beside the file that a symbolic link leads to, in name order.
base::Result<std::vector<fs::path>> drop_ins(const fs::path& main) {
  std::error_code wrong;
  const fs::path real = fs::canonical(main, wrong);
  if (wrong) return base::fail_errno(wrong.value(), main.string());
  const fs::path directory = real.parent_path() / "config.d";
  const auto names = base::list_directory(directory);
  if (!names && names.error().code == base::ErrorCode::kGone) return std::vector<fs::path>{};
  if (!names) return unexpected(names.error());
  std::vector<fs::path> files;
  for (const std::string& name : *names) {
    if (!fs::is_directory(directory / name, wrong)) files.push_back(directory / name);
  }
  return files;
}

base::Result<Merged> read(const fs::path& main) {
  Merged merged;
  const auto others = drop_ins(main);
  if (!others) return unexpected(others.error());
  if (auto done = merge(main, merged); !done) return unexpected(std::move(done.error()));
  for (const fs::path& file : *others) {
    if (auto done = merge(file, merged); !done) return unexpected(std::move(done.error()));
  }
  return merged;
}

/// Where kata-deploy puts the files that it hands to each shim:
/// runtimes/<shim>/configuration-<shim>.toml.
std::vector<fs::path> deployed(const fs::path& runtimes) {
  std::vector<fs::path> files;
  const auto shims = base::list_directory(runtimes);
  if (!shims) return files;
  for (const std::string& shim : *shims) {
    files.push_back(runtimes / shim / ("configuration-" + shim + ".toml"));
  }
  return files;
}

/// Kata's search order: the administrator's place first, and runtime-rs, the default runtime,
/// before the Go runtime (kata-types' default.rs; katautils' config-settings.go).
std::vector<fs::path> candidates(const fs::path& root) {
  std::vector<fs::path> files;
  for (const char* directory : {"etc/kata-containers", "usr/share/defaults/kata-containers",
                                "opt/kata/share/defaults/kata-containers"}) {
    files.push_back(root / directory / "runtime-rs" / "configuration.toml");
    files.push_back(root / directory / "configuration.toml");
  }
  const auto more = deployed(root / "opt/kata/share/defaults/kata-containers/runtimes");
  files.insert(files.end(), more.begin(), more.end());
  return files;
}

base::Result<Merged> find(const fs::path& root) {
  for (const fs::path& file : candidates(root)) {
    std::error_code unreadable;
    if (!fs::exists(file, unreadable) && !unreadable) continue;
    auto merged = read(file);
    if (!merged || merged->has_affinity) return merged;
  }
  return Merged{};
}

}  // namespace

base::Result<Config> load_config(const std::optional<fs::path>& file, const fs::path& root) {
  auto merged = file ? read(*file) : find(root);
  if (!merged) return unexpected(std::move(merged.error()));
  if (auto checked = check(merged->entries); !checked) {
    return unexpected(std::move(checked.error()));
  }
  Config config = make_config(merged->entries);
  config.files = std::move(merged->files);
  return config;
}

}  // namespace ka::config
