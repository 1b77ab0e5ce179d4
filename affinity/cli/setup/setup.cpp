// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/setup/setup.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <span>

#include "affinity/cli/kata/pod_cgroups.hpp"
#include "affinity/cli/setup/reload.hpp"
#include "affinity/cli/setup/selection.hpp"
#include "affinity/cli/setup/setup_text.hpp"
#include "affinity/config/config.hpp"
#include "base/files.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;
using config::Containerd;
using config::Handler;
using Kind = Change::Kind;

constexpr const char* kMark = "# Written by kata-affinityctl setup; `setup --undo` removes it.\n";
/// Of --settings. Read after the other, so that its keys hold.
constexpr const char* kSettings = "config.d/60-affinity-settings.toml";
constexpr const char* kDropIns[] = {kSetupDropIn, kSettings};
constexpr const char* kImported = "etc/containerd/conf.d/50-kata-affinity.toml";
constexpr const char* kToPaste = "etc/containerd/kata-affinity.toml";

bool is_ours(const std::string& text) { return text.starts_with(kMark); }

/// The content of `file`, empty where it does not exist.
Result<std::string> read_present(const fs::path& file) {
  auto text = base::read_regular_file(file);
  if (is_gone(text)) return std::string();
  return text;
}

Result<Change> change_to(const fs::path& file, std::string text) {
  const auto present = read_present(file);
  if (!present) return unexpected(present.error());
  if (present->empty()) return Change{Kind::kCreate, file, std::move(text)};
  if (!is_ours(*present)) {
    return base::fail(ErrorCode::kConflict, file.native() +
                                                " exists and was not written by setup: move it "
                                                "away, or configure kata-affinity by hand");
  }
  return Change{*present == text ? Kind::kKeep : Kind::kReplace, file, std::move(text)};
}

/// The one that was asked for; else the one that is set, so that a second run changes nothing.
Profile chosen_profile(const SetupOptions& options) {
  return parse_profile(options.profile)
      .value_or(profile_of_node(options.root).value_or(Profile::kIsolated));
}

/// `real_shim` is kept from an earlier setup where it is empty.
Result<std::string> drop_in_text(const fs::path& main, const ProfileSettings& settings,
                                 std::string real_shim) {
  const auto merged = read_merged(main);
  if (!merged) return unexpected(merged.error());
  std::string text = std::string(kMark) + "[affinity]\n";
  for (const auto& [key, value] : settings.keys) text += fmt::format("{} = \"{}\"\n", key, value);
  if (real_shim.empty()) real_shim = text_at(*merged, {"affinity", "real_shim"});
  if (!real_shim.empty()) text += fmt::format("real_shim = \"{}\"\n", real_shim);
  // A drop-in of ours that is there already has turned it off: it must not come back on.
  const auto own = read_present(main.parent_path() / kSetupDropIn);
  const bool turned_off = own && own->find("enable_vcpus_pinning") != std::string::npos;
  if (turned_off || flag_at(*merged, {"runtime", "enable_vcpus_pinning"}).value_or(false)) {
    text +=
        "\n# Kata's own pinning would undo this one.\n[runtime]\nenable_vcpus_pinning = false\n";
  }
  return text;
}

std::string snippet_text(const Containerd& containerd, const Handler& handler) {
  const std::string table = fmt::format(
      "plugins.\"{}\".containerd.runtimes.{}-affinity",
      containerd.version >= 3 ? "io.containerd.cri.v1.runtime" : "io.containerd.grpc.v1.cri",
      handler.name);
  std::string text = kMark;
  if (containerd.version >= 3) text += fmt::format("version = {}\n", containerd.version);
  text += fmt::format(
      "[{}]\n  runtime_type = \"io.containerd.kata-affinity.v2\"\n"
      "  privileged_without_host_devices = true\n  pod_annotations = [\"io.katacontainers.*\"]\n",
      table);
  if (!handler.config.empty()) {
    text +=
        fmt::format("  [{}.options]\n    ConfigPath = \"{}\"\n", table, handler.config.native());
  }
  return text;
}

/// Before 2.0 containerd drops all settings of its CRI plugin for those of an imported file
/// (containerd pull request 9982), so there the snippet has to be pasted.
Result<void> add_snippet(const Containerd& containerd, const Handler& handler, const fs::path& root,
                         SetupPlan& plan) {
  const bool imports = containerd.version >= 3;
  const fs::path file = root / (imports ? kImported : kToPaste);
  auto change = change_to(file, snippet_text(containerd, handler));
  if (!change) return unexpected(change.error());
  plan.changes.push_back(std::move(*change));
  if (!imports) {
    plan.notes.push_back("append " + file.native() +
                         " to /etc/containerd/config.toml by hand: containerd before 2.0 would "
                         "lose its CRI settings if it imported it");
  } else if (!containerd.imports_conf_d) {
    plan.notes.emplace_back(
        "make sure that /etc/containerd/config.toml has imports = "
        "[\"/etc/containerd/conf.d/*.toml\"] "
        "(2.2 and later print it by `containerd config default`)");
  }
  plan.notes.push_back("restart containerd, and create a RuntimeClass with handler \"" +
                       handler.name + "-affinity\"");
  return {};
}

/// A drop-in counts for all files in its directory: each once.
std::vector<fs::path> one_a_directory(const std::vector<Installation>& installations) {
  std::vector<fs::path> kept;
  for (const Installation& one : installations) {
    const bool known = std::ranges::any_of(kept, [&one](const fs::path& other) {
      return other.parent_path() == one.config.parent_path();
    });
    if (!known) kept.push_back(one.config);
  }
  return kept;
}

std::vector<std::pair<Profile, ProfileText>> choice(const NodeFacts& node) {
  std::vector<std::pair<Profile, ProfileText>> profiles;
  for (const Profile one : {Profile::kWatch, Profile::kIsolated, Profile::kDefault}) {
    profiles.emplace_back(one, text_of(one, node));
  }
  return profiles;
}

/// Files that Kata merges after our drop-in override it.
void note_overrides(const fs::path& main, const ProfileSettings& settings, SetupPlan& plan) {
  const auto merged = read_merged(main);
  if (!merged) return;
  for (const auto& [key, value] : settings.keys) {
    const fs::path file = overriding(*merged, {"affinity", key}, main);
    if (file.empty()) continue;
    plan.notes.push_back(file.native() + " is read later and sets " + key +
                         ": check that this is intended");
  }
  const KeyPath pinning{"runtime", "enable_vcpus_pinning"};
  const fs::path file = overriding(*merged, pinning, main);
  if (file.empty() || !flag_at(*merged, pinning).value_or(false)) return;
  plan.notes.push_back(file.native() +
                       " is read later and turns Kata's own pinning on: set enable_vcpus_pinning "
                       "= false there");
}

/// Where all of a sandbox is in its cgroup, that is widened for it; where shim and virtiofsd are
/// not, they may use the pool as it is: both isolate, unless kubelet kills the pod.
void note_pod_cgroups(const fs::path& root, SetupPlan& plan) {
  const auto without_cpuset = slices_without_cpuset(root);
  for (const Installation& one : plan.installations) {
    const auto merged = read_merged(one.config);
    if (!merged) continue;
    const auto problem = pod_cgroup_problem(*merged, one.config, without_cpuset);
    if (!problem) continue;
    plan.notes.push_back(one.config.native() + ": " + problem->text + ": " + problem->advice);
  }
}

/// The daemon and `doctor` look in the default locations and where handlers point.
void note_hidden(const fs::path& root, SetupPlan& plan) {
  const auto seen = find_kata(root);
  for (const Installation& one : plan.installations) {
    if (std::ranges::count(seen, one.config) > 0) continue;
    plan.notes.push_back("kata-affinityd does not look for " + one.config.native() +
                         ": link it to /etc/kata-containers/configuration.toml, or start the "
                         "daemon with --config FILE");
  }
}

/// Handlers decide which Kata a file belongs to.
void note_containerd(const fs::path& root, SetupPlan& plan) {
  base::Trouble ignored;
  const auto containerd = config::read_containerd(root, ignored);
  if (containerd || is_gone(containerd)) return;
  plan.notes.push_back("containerd's handlers are unknown: " + containerd.error().message);
}

/// Of the installations that the plan is about, each checked before.
Result<void> add_drop_ins(const ProfileSettings& settings, const std::string& real_shim,
                          SetupPlan& plan) {
  for (const fs::path& main : one_a_directory(plan.installations)) {
    if (const auto good = config::load_config(main); !good) return unexpected(good.error());
    auto text = drop_in_text(main, settings, real_shim);
    if (!text) return unexpected(text.error());
    auto change = change_to(main.parent_path() / kSetupDropIn, std::move(*text));
    if (!change) return unexpected(change.error());
    plan.changes.push_back(std::move(*change));
    note_overrides(main, settings, plan);
  }
  return {};
}

/// The settings in the file of --settings, checked; may be empty.
Result<std::string> settings_text(const fs::path& file) {
  const auto config = config::load_config(file);
  if (!config) return unexpected(config.error());
  auto text = base::read_regular_file(file);
  if (!text) return unexpected(text.error());
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) return std::string();
  if (!config->has_table) {
    return base::fail(ErrorCode::kInvalid, file.native() + ": has no [affinity] table");
  }
  return kMark + *text + (text->ends_with('\n') ? "" : "\n");
}

void add_removal(const fs::path& file, SetupPlan& plan) {
  const auto present = read_present(file);
  if (!present || present->empty()) return;
  if (is_ours(*present)) {
    plan.changes.push_back({Kind::kRemove, file, {}});
  } else {
    plan.notes.push_back(file.native() + " was not written by setup and stays");
  }
}

Result<void> add_settings(const fs::path& from, SetupPlan& plan) {
  const auto text = settings_text(from);
  if (!text) return unexpected(text.error());
  for (const fs::path& main : one_a_directory(plan.installations)) {
    const fs::path file = main.parent_path() / kSettings;
    if (text->empty()) {
      add_removal(file, plan);
      continue;
    }
    auto change = change_to(file, *text);
    if (!change) return unexpected(change.error());
    plan.changes.push_back(std::move(*change));
  }
  return {};
}

/// The daemon reads one table: none of ours may be left beside Katas that were not chosen.
void remove_others(const std::vector<Installation>& all, SetupPlan& plan) {
  for (const fs::path& main : one_a_directory(all)) {
    const fs::path directory = main.parent_path();
    const bool chosen = std::ranges::any_of(plan.installations, [&](const Installation& one) {
      return one.config.parent_path() == directory;
    });
    for (const char* name : chosen ? std::span<const char* const>() : std::span(kDropIns)) {
      const auto present = read_present(directory / name);
      if (present && is_ours(*present)) {
        plan.changes.push_back({Kind::kRemove, directory / name, {}});
      }
    }
  }
}

Result<std::string> add_proxy(const SetupOptions& options, SetupPlan& plan) {
  base::Trouble ignored;
  const auto containerd = config::read_containerd(options.root, ignored);
  if (!containerd) return unexpected(containerd.error());
  const auto handler = handler_behind_proxy(*containerd, options);
  if (!handler) return unexpected(handler.error());
  auto added = add_snippet(*containerd, *handler, options.root, plan);
  if (!added) return unexpected(added.error());
  return handler->shim;
}

/// What was pasted by hand goes by hand: its handlers start a program that may be removed next.
void note_pasted(const fs::path& root, SetupPlan& plan) {
  const fs::path main = root / "etc/containerd/config.toml";
  base::Trouble ignored;
  const auto containerd = config::read_containerd(root, ignored);
  if (!containerd) return;
  for (const Handler& handler : containerd->handlers) {
    if (!handler.is_proxy() || handler.declared_in != main) continue;
    plan.notes.push_back("remove the runtime handler " + handler.name + " from " + main.native() +
                         " by hand, and restart containerd: it starts the shim proxy");
  }
}

Result<void> remove_file(const fs::path& file) {
  std::error_code wrong;
  fs::remove(file, wrong);
  if (wrong) return base::fail_errno(wrong.value(), file.native());
  // A directory that was made for it goes with it; one that holds something stays.
  if (file.parent_path().filename() == "config.d") fs::remove(file.parent_path(), wrong);
  return {};
}

Result<void> write(const fs::path& file, const std::string& text) {
  std::error_code wrong;
  fs::create_directories(file.parent_path(), wrong);
  if (wrong) return base::fail_errno(wrong.value(), file.parent_path().native());
  if (auto done = base::write_atomically(file, text); !done) return done;
  fs::permissions(file, static_cast<fs::perms>(0644), wrong);
  if (wrong) return base::fail_errno(wrong.value(), file.native());
  return {};
}

void note_reload(SetupPlan& plan) {
  const auto reloaded = reload_daemon();
  if (!reloaded) {
    plan.notes.push_back(reloaded.error().message);
  } else if (*reloaded) {
    plan.notes.emplace_back("kata-affinityd was reloaded");
  } else {
    plan.notes.emplace_back("kata-affinityd is not running: systemctl enable --now kata-affinityd");
  }
}

}  // namespace

std::string change_name(Kind kind) {
  switch (kind) {
    case Kind::kCreate:
      return "create";
    case Kind::kReplace:
      return "replace";
    case Kind::kRemove:
      return "remove";
    case Kind::kKeep:
      break;
  }
  return "keep";
}

Result<SetupPlan> plan_setup(const SetupOptions& options) {
  auto chosen = chosen_installations(options);
  if (!chosen) return unexpected(chosen.error());
  const NodeFacts node = read_node(options.root);
  const Profile profile = chosen_profile(options);
  const auto settings = settings_of(profile, node);
  if (!settings) return unexpected(settings.error());
  SetupPlan plan{.installations = std::move(*chosen),
                 .profile = profile,
                 .profiles = choice(node),
                 .notes = settings->notes};
  auto real_shim = options.proxy ? add_proxy(options, plan) : Result<std::string>();
  if (!real_shim) return unexpected(real_shim.error());
  if (auto added = add_drop_ins(*settings, *real_shim, plan); !added) {
    return unexpected(added.error());
  }
  note_hidden(options.root, plan);
  note_containerd(options.root, plan);
  if (profile == Profile::kIsolated) note_pod_cgroups(options.root, plan);
  if (!options.settings.empty()) {
    if (auto added = add_settings(options.settings, plan); !added) {
      return unexpected(added.error());
    }
  }
  if (const auto all = all_installations(options)) remove_others(*all, plan);
  return plan;
}

Result<SetupPlan> plan_undo(const SetupOptions& options) {
  const auto all = all_installations(options);
  if (!all) return unexpected(all.error());
  SetupPlan plan;
  for (const fs::path& main : one_a_directory(*all)) {
    for (const char* name : kDropIns) add_removal(main.parent_path() / name, plan);
  }
  add_removal(fs::path(options.root) / kImported, plan);
  add_removal(fs::path(options.root) / kToPaste, plan);
  note_pasted(options.root, plan);
  return plan;
}

Result<void> carry_out(const SetupPlan& plan) {
  for (const Change& change : plan.changes) {
    if (change.kind == Kind::kKeep) continue;
    const auto done =
        change.kind == Kind::kRemove ? remove_file(change.file) : write(change.file, change.text);
    if (!done) return done;
  }
  return {};
}

Exit run(const SetupOptions& options, Output& output) {
  auto plan = options.undo ? plan_undo(options) : plan_setup(options);
  if (!plan) {
    const Exit failed = output.fail(plan.error());
    return plan.error().code == ErrorCode::kNotFound ? Exit::kNo : failed;
  }
  if (options.yes) {
    if (const auto done = carry_out(*plan); !done) return output.fail(done.error());
    if (options.root == "/" && !options.undo) note_reload(*plan);
  }
  output.show(to_json(*plan, options.yes), [&] { return describe(*plan, options.yes); });
  return Exit::kDone;
}

}  // namespace ka::cli
