// SPDX-License-Identifier: Apache-2.0
// The start of the daemon and its state files, as JSON.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/api/encode.hpp"
#include "affinity/line/node.hpp"
#include "affinity/messages/events.hpp"
#include "affinity/registry/registry.hpp"

namespace ka::api {
namespace {

namespace json = boost::json;

json::array silent_sources(const policy::ledger::StartGate& gate) {
  json::array names;
  for (const policy::ledger::Source source : gate.silent())
    names.emplace_back(policy::ledger::source_name(source));
  return names;
}

json::array lost_state(const policy::ledger::StartGate& gate) {
  json::array lost;
  for (const policy::ledger::LostState& one : gate.lost()) {
    lost.push_back({{"file", one.file}, {"sandbox", one.pod}, {"reason", one.reason}});
  }
  return lost;
}

}  // namespace

json::object start_to_json(const line::Node& node) {
  const policy::ledger::StartGate& gate = node.gate();
  json::array warnings = start_warnings(node);
  const bool is_done_without = gate.may_widen() && !gate.silent().empty();
  if (is_done_without) warnings.emplace_back(messages::silent_text(gate, registry::kStartLimit));
  for (const auto& [pod, text] : node.registry.refused_vmms()) warnings.emplace_back(text);
  json::array unsaved;
  for (const auto& [pod, one] : node.registry.unsaved()) {
    unsaved.push_back({{"sandbox", pod}, {"reason", one.reason}});
  }
  return {{"may_widen", gate.may_widen()},
          {"silent_sources", silent_sources(gate)},
          {"lost_state", lost_state(gate)},
          {"unsaved", std::move(unsaved)},
          {"warnings", std::move(warnings)}};
}

json::array start_warnings(const line::Node& node) {
  json::array warnings;
  const std::string waiting = messages::waiting_text(node.gate());
  if (!waiting.empty()) warnings.emplace_back(waiting);
  for (const auto& [pod, unsaved] : node.registry.unsaved()) {
    warnings.emplace_back(registry::describe(pod, unsaved));
  }
  for (const auto& [pod, held] : node.unproved) {
    warnings.emplace_back("sandbox " + pod +
                          " is not placed, its VMM cannot be examined, retrying: " + held.reason);
  }
  return warnings;
}

json::array inert_settings(const line::Options& options) {
  json::array settings;
  if (!options.enable) settings.emplace_back("enable is false: no thread is placed");
  if (options.observe) settings.emplace_back("mode is \"observe\": nothing is written");
  return settings;
}

}  // namespace ka::api
