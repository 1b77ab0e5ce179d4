// SPDX-License-Identifier: Apache-2.0
#include "affinity/config/config.hpp"

#include <algorithm>
#include <utility>

#include "affinity/config/check.hpp"
#include "affinity/config/entries.hpp"
#include "affinity/config/files.hpp"
#include "affinity/config/keys.hpp"
#include "affinity/documents/settings.hpp"
#include "base/files.hpp"

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
  std::vector<std::string> words(const std::string& name) const {
    const Value* value = find(name);
    return value == nullptr ? std::vector<std::string>{}
                            : std::get<std::vector<std::string>>(*value);
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

bool is_allowed(const Values& values, std::string_view annotation) {
  const auto names = values.words("allow_annotations");
  return std::ranges::find(names, annotation) != names.end();
}

policy::plan::Settings make_settings(const Values& values) {
  policy::plan::Settings settings;
  settings.vcpu_pinning = *documents::parse_vcpu_pinning(values.text("vcpu_pinning"));
  settings.housekeeping = *documents::parse_housekeeping(values.text("housekeeping"));
  for (const policy::RoleInfo& info : policy::kRoles) {
    if (!info.has_setting) continue;
    const std::string text = values.text(std::string(info.name));
    if (text.empty()) continue;
    settings.housekeeping_by_role[info.role] = *documents::parse_housekeeping(text);
  }
  settings.guest = {.agent = *documents::parse_guest_agent(values.text("guest")),
                    .move_interrupts = values.text("guest_irqs") == "floating",
                    .lift_quota = values.text("cfs_quota") == "lift",
                    .environment = values.flag("environment"),
                    .environment_by_annotation = is_allowed(values, "environment")};
  settings.move_memory = values.text("memory") == "migrate";
  settings.manage_cgroup = values.text("cgroup") == "manage";
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
  config.log_level = *log::parse_level(values.text("log_level"));
  config.state_dir = values.text("state_dir");
  config.kubelet_state = values.text("kubelet_state");
  config.nri_socket = values.text("nri_socket");
  config.libvirt_uri = values.text("libvirt_uri");
  config.libvirt_domains = values.words("libvirt_domains");
  config.libvirt_config = values.flag("libvirt_config");
  config.libvirt_by_annotation = is_allowed(values, "libvirt_domain");
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
  const auto text = base::read_regular_file(file, kMaxFile);
  if (!text) return unexpected(text.error());
  auto entries = parse_toml(*text, file);
  if (!entries) return unexpected(std::move(entries.error()));
  into.files.push_back(file);
  if (!*entries) return {};
  into.has_affinity = true;
  for (auto& [path, entry] : **entries) into.entries.insert_or_assign(path, std::move(entry));
  return {};
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

base::Result<Config> load_config(const std::optional<fs::path>& file, const fs::path& root,
                                 const policy::CpuSet& machine) {
  auto merged = file ? read(*file) : find(root);
  if (!merged) return base::fail(base::ErrorCode::kInvalid, merged.error().message);
  if (auto checked = check(merged->entries); !checked) {
    return unexpected(std::move(checked.error()));
  }
  if (!machine.empty()) {
    if (auto checked = check_cpus(merged->entries, machine); !checked) {
      return unexpected(std::move(checked.error()));
    }
  }
  Config config = make_config(merged->entries);
  config.files = std::move(merged->files);
  return config;
}

}  // namespace ka::config
