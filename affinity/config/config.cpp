// SPDX-License-Identifier: Apache-2.0
#include "affinity/config/config.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <variant>

#include "affinity/config/check.hpp"
#include "affinity/config/classes.hpp"
#include "affinity/config/entries.hpp"
#include "affinity/config/files.hpp"
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

  /// Empty for an array: that has words.
  std::string text(const Key& key) const {
    const Value* value = find(key);
    if (value == nullptr) return std::string(key.fallback);
    if (const auto* flag = std::get_if<bool>(value)) return *flag ? "true" : "false";
    if (const auto* number = std::get_if<std::int64_t>(value)) return std::to_string(*number);
    const auto* text = std::get_if<std::string>(value);
    return text == nullptr ? std::string() : *text;
  }
  std::vector<std::string> words(const Key& key) const {
    const Value* value = find(key);
    return value == nullptr ? std::vector<std::string>{}
                            : std::get<std::vector<std::string>>(*value);
  }
  /// Of an array its words, of any other value the one word that it is.
  std::vector<std::string> all(const Key& key) const {
    const bool is_array = key.type == Type::kWords || key.type == Type::kNamespaces;
    return is_array ? words(key) : std::vector{text(key)};
  }

 private:
  const Value* find(const Key& key) const {
    const auto own = entries_.find({"handler", handler_, std::string(key.name)});
    if (own != entries_.end()) return &own->second.value;
    const auto shared = entries_.find(path_of(key));
    return shared == entries_.end() ? nullptr : &shared->second.value;
  }

  const Entries& entries_;
  std::string handler_;
};

/// Stores a value as its key's row defines.
struct Assign {
  Config& config;
  const Values& values;
  const Key& key;

  void operator()(bool Config::* member) const { config.*member = values.text(key) == "true"; }
  void operator()(std::string Config::* member) const { config.*member = values.text(key); }
  void operator()(fs::path Config::* member) const { config.*member = values.text(key); }
  void operator()(std::chrono::seconds Config::* member) const {
    config.*member = std::chrono::seconds(*base::parse_number(values.text(key)));
  }
  void operator()(std::vector<std::string> Config::* member) const {
    config.*member = values.words(key);
  }
  void operator()(SetConfig set) const { set(config, values.text(key)); }
  void operator()(SetSettingsWords) const {}  // the same
  void operator()(SetWords set) const { set(config, values.words(key)); }
  void operator()(SetRules set) const { set(config.managed, values.all(key)); }
  void operator()(SetSettings) const {}  // once for each handler: make_settings
};

struct Differs {
  const Config& now;
  const Config& next;

  template <typename Member>
  bool operator()(Member Config::* member) const {
    return now.*member != next.*member;
  }
  bool operator()(SetConfig) const { return false; }  // such are always applied
  bool operator()(SetSettings) const { return false; }
  bool operator()(SetSettingsWords) const { return false; }
  bool operator()(SetWords) const { return false; }
  bool operator()(SetRules) const { return false; }  // compared as a whole
};

Settings make_settings(const Values& values, const Config& config) {
  Settings settings;
  for (const Key& key : kKeys) {
    if (const auto* set = std::get_if<SetSettings>(&key.target)) (*set)(settings, values.text(key));
    if (const auto* set = std::get_if<SetSettingsWords>(&key.target)) {
      (*set)(settings, values.words(key));
    }
  }
  settings.guest.environment_by_annotation = config.allows("environment");
  return settings;
}

/// Precondition: the entries were checked.
Config make_config(const Entries& entries) {
  const Values values(entries, "");
  Config config;
  for (const Key& key : kKeys) std::visit(Assign{config, values, key}, key.target);
  config.defaults = make_settings(values, config);
  for (const auto& [path, entry] : entries) {
    if (path.size() != 3 || is_of_class(path)) continue;  // a handler's
    config.by_handler[path[1]] = make_settings(Values(entries, path[1]), config);
  }
  config.quiet.by_annotation = config.allows(policy::kGradeKey);
  config.quiet.tuning_by_annotation = config.allows(policy::kTuningKey);
  config.classes = make_classes(entries);
  for (const policy::ClassKindInfo& kind : policy::kClassKinds) {
    if (config.allows(kind.name)) config.classes.by_annotation.insert(kind.kind);
  }
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

/// kGone: there is no such main file. Not where a drop-in went away that was listed just now.
base::Result<Merged> read(const fs::path& main) {
  Merged merged;
  const auto others = drop_ins(main);
  if (!others) return unexpected(others.error());
  if (auto done = merge(main, merged); !done) return unexpected(std::move(done.error()));
  for (const fs::path& file : *others) {
    const auto done = merge(file, merged);
    if (is_gone(done)) return base::fail(base::ErrorCode::kTransient, done.error().message);
    if (!done) return unexpected(done.error());
  }
  return merged;
}

/// Defaults only where every place was seen: settings that cannot be read now are settings.
base::Result<Merged> find(const fs::path& root) {
  base::Trouble unseen;
  for (const fs::path& file : candidates(root, unseen)) {
    std::error_code unreadable;
    if (!fs::exists(file, unreadable) && !unreadable) continue;
    auto merged = read(file);
    if (!merged || merged->has_affinity) return merged;
  }
  if (!unseen.none()) return unexpected(*unseen.any());
  return Merged{};
}

/// One that a caller names has to be there.
base::Result<Merged> read_named(const fs::path& file) {
  auto merged = read(file);
  if (!is_gone(merged)) return merged;
  return base::fail(base::ErrorCode::kInvalid, merged.error().message);
}

base::Result<Config> load(const std::optional<fs::path>& file, const fs::path& root,
                          const policy::CpuSet& machine) {
  auto merged = file ? read_named(*file) : find(root);
  if (!merged) return unexpected(std::move(merged.error()));
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
  config.has_table = merged->has_affinity;
  return config;
}

}  // namespace

base::Result<Config> load_config(const std::optional<fs::path>& file, const fs::path& root,
                                 const policy::CpuSet& machine) {
  return load(file, root, machine);
}

Config default_config() { return make_config({}); }

std::vector<std::string_view> keys_without_effect(const Config& config) {
  const Config defaults = default_config();
  std::vector<std::string_view> names;
  if (config.mode != Mode::kManaged) {
    if (config.managed != defaults.managed) names.emplace_back("managed");
  } else if (config.pod_resources != defaults.pod_resources && !config.pod_resources.empty()) {
    names.emplace_back("pod_resources");
  }
  return names;
}

std::vector<std::string_view> keys_for_next_start(const Config& now, const Config& next) {
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) {
    const bool waits = key.reload == Reload::kNextStart;
    if (waits && std::visit(Differs{now, next}, key.target)) names.push_back(key.name);
  }
  const bool managed = now.mode == Mode::kManaged;
  if (managed != (next.mode == Mode::kManaged)) names.emplace_back("mode");
  if (managed && now.managed != next.managed) names.emplace_back("managed");
  // Of what it allows, only this is checked when the daemon starts.
  if (now.allows(kDomainAnnotation) != next.allows(kDomainAnnotation)) {
    names.emplace_back("allow_annotations");
  }
  return names;
}

}  // namespace ka::config
