// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/setup/setup_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace ka::cli {
namespace {

using Kind = Change::Kind;

bool is_open(const Change& change) { return change.kind != Kind::kKeep; }

std::string describe_profiles(const SetupPlan& plan) {
  if (!plan.profile) return {};
  std::string text = "Profiles (--profile NAME; * is the one below):\n";
  for (const auto& [profile, effect] : plan.profiles) {
    text += fmt::format("{} {:<8}  {}\n{:12}{}\n", profile == *plan.profile ? '*' : ' ',
                        profile_name(profile), effect.gives, "", effect.costs);
  }
  return text + '\n';
}

/// What uses a configuration: "Go runtime, handlers kata-qemu, kata".
std::string users_of(const Installation& installation) {
  const char* runtime = is_rust(installation.config) ? "runtime-rs" : "Go runtime";
  if (installation.handlers.empty()) return fmt::format("{}, no handler names it", runtime);
  return fmt::format("{}, handler{} {}", runtime, installation.handlers.size() > 1 ? "s" : "",
                     fmt::join(installation.handlers, ", "));
}

std::string describe_installations(const SetupPlan& plan) {
  std::string text = plan.installations.empty() ? "" : "Kata configurations:\n";
  for (const Installation& one : plan.installations) {
    text += fmt::format("  {}\n{:12}{}\n", one.config.native(), "", users_of(one));
  }
  return text.empty() ? text : text + '\n';
}

std::string describe_change(const Change& change) {
  std::string text = fmt::format("{:<8} {}\n", change_name(change.kind), change.file.native());
  std::string_view rest = is_open(change) ? std::string_view(change.text) : "";
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    text += fmt::format("{:9}| {}\n", "", rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return text;
}

/// Without a profile nothing of ours is left: defaults would start to place threads.
const char* next_step(const SetupPlan& plan, bool done) {
  if (!done) return "Nothing changed yet. To apply, repeat the command with --yes.\n";
  if (plan.profile) return "Done.\n";
  return "Done. A running daemon keeps its settings until it is reloaded.\n";
}

}  // namespace

boost::json::object to_json(const SetupPlan& plan, bool done) {
  boost::json::array installations;
  for (const Installation& one : plan.installations) {
    installations.push_back(
        {{"config", one.config.native()},
         {"runtime", is_rust(one.config) ? "runtime-rs" : "go"},
         {"handlers", boost::json::array(one.handlers.begin(), one.handlers.end())}});
  }
  boost::json::array changes;
  for (const Change& change : plan.changes) {
    changes.push_back({{"change", change_name(change.kind)},
                       {"file", change.file.native()},
                       {"text", change.text}});
  }
  boost::json::array notes(plan.notes.begin(), plan.notes.end());
  boost::json::object document{
      {"done", done}, {"changes", std::move(changes)}, {"notes", std::move(notes)}};
  document["installations"] = std::move(installations);
  if (plan.profile) document["profile"] = profile_name(*plan.profile);
  return document;
}

std::string describe(const SetupPlan& plan, bool done) {
  std::string text = describe_profiles(plan) + describe_installations(plan);
  for (const Change& change : plan.changes) text += describe_change(change);
  for (const std::string& note : plan.notes) text += "note     " + note + '\n';
  const bool nothing = std::ranges::none_of(plan.changes, is_open);
  return text + (nothing ? "Nothing to change.\n" : next_step(plan, done));
}

}  // namespace ka::cli
