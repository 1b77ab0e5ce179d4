// SPDX-License-Identifier: Apache-2.0
#include "affinity/quiet/answer.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "affinity/helper_client/document.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"

namespace ka::quiet {
namespace {

namespace json = boost::json;
using base::Fields;
using base::InputError;
using helper_client::read_text;
using policy::QuietKind;
using policy::QuietRest;
using policy::QuietState;

QuietRest read_rest(const json::value& value, const std::string& path, InputError& wrong) {
  QuietRest rest;
  Fields fields(value, path, wrong);
  fields.require({"name", "cpus", "why"});
  read_text(fields, "name", rest.name, base::kMaxName);
  fields.read("cpus", rest.cpus);
  read_text(fields, "why", rest.why, base::kMaxSentence);
  fields.finish();
  return rest;
}

void read_left(Fields& fields, QuietKind& kind, InputError& wrong) {
  fields.each("left", [&](const json::value& value, const std::string& path) {
    if (kind.left.size() == kMaxLeft) return wrong.add(path, "more than 64 are listed");
    kind.left.push_back(read_rest(value, path, wrong));
  });
  if (static_cast<std::size_t>(kind.left_total) < kind.left.size()) {
    fields.reject("left_total", "is less than what is listed");
  }
}

void read_name(Fields& fields, std::string& into) {
  fields.read("kind", into);
  if (std::ranges::count(policy::kQuietKinds, into) == 0) fields.reject("kind", "is not known");
}

QuietKind read_kind(const json::value& value, const std::string& path, InputError& wrong) {
  QuietKind kind;
  Fields fields(value, path, wrong);
  fields.require({"kind", "found", "moved", "left", "left_total", "problem"});
  read_name(fields, kind.kind);
  fields.read("found", kind.found);
  fields.read("moved", kind.moved);
  fields.read("left_total", kind.left_total);
  read_left(fields, kind, wrong);
  read_text(fields, "problem", kind.problem, base::kMaxSentence);
  fields.finish();
  return kind;
}

void add_kind(QuietState& state, QuietKind kind, const std::string& path, InputError& wrong) {
  if (std::ranges::count(state.kinds, kind.kind, &QuietKind::kind) > 0) {
    return wrong.add(path, "kind \"" + kind.kind + "\" is there twice");
  }
  state.kinds.push_back(std::move(kind));
}

}  // namespace

http::Request quiet_request(const policy::QuietRequest& wanted) {
  json::object body{{"cpus", policy::format_list(wanted.cpus)}};
  if (!wanted.interrupts.empty()) body["interrupts"] = policy::format_list(wanted.interrupts);
  return {"POST", "/v1/quiet", json::serialize(body)};
}

base::Result<QuietState> read_state(std::string_view document) {
  const auto parsed = base::parse_json(document, "answer");
  if (!parsed) return unexpected(parsed.error());
  QuietState state;
  InputError wrong;
  Fields fields(*parsed, "", wrong);
  fields.require({"cpus", "kinds", "problem"});
  fields.read("cpus", state.cpus);
  fields.each("kinds", [&](const json::value& value, const std::string& path) {
    if (wrong.empty()) add_kind(state, read_kind(value, path, wrong), path, wrong);
  });
  read_text(fields, "problem", state.problem, base::kMaxSentence);
  fields.read("interrupts", state.interrupts);
  fields.finish();
  if (!wrong.empty()) return unexpected(wrong.error());
  return state;
}

}  // namespace ka::quiet
