// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/view/node.hpp"

#include <algorithm>
#include <boost/json/value.hpp>
#include <cctype>
#include <utility>

#include "base/json/json.hpp"
#include "base/json/lookup.hpp"

namespace ka::cluster {
namespace json = boost::json;
namespace {

using base::ErrorCode;
using base::Result;

/// The obstacle's name that says that a neighbour is at fault.
constexpr std::string_view kContested = "cpus-contested";

/// "cpus-contested" -> "CpusContested": the form of reasons of conditions.
std::string reason_of(std::string_view name) {
  std::string reason;
  bool begins = true;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) != 0) {
      reason += begins ? static_cast<char>(std::toupper(byte)) : letter;
    }
    begins = letter == '-';
  }
  return reason.empty() ? "NotIsolated" : reason;
}

bool is_true(const json::value& from, std::string_view pointer) {
  const bool* flag = base::value_at(from, pointer).if_bool();
  return flag != nullptr && *flag;
}

bool is_false(const json::value& from, std::string_view pointer) {
  const bool* flag = base::value_at(from, pointer).if_bool();
  return flag != nullptr && !*flag;
}

void append(std::string& text, const std::string& more) {
  if (!text.empty()) text += "; ";
  text += more;
}

std::string name_of(const json::value& container) {
  const std::string name = base::text_at(container, "/name");
  return "container " + (name.empty() ? base::text_at(container, "/id") : name);
}

/// Why a container is not isolated, and what would mend it.
std::string why_not(const json::value& container) {
  std::string text;
  for (const json::value& obstacle : base::elements_at(container, "/obstacles")) {
    const std::string remedy = base::text_at(obstacle, "/remedy");
    append(text, base::text_at(obstacle, "/text") + (remedy.empty() ? "" : " (" + remedy + ')'));
  }
  return name_of(container) + " is not isolated" + (text.empty() ? "" : ": " + text);
}

bool is_contested(const json::value& container) {
  return std::ranges::any_of(
      base::elements_at(container, "/obstacles"),
      [](const json::value& obstacle) { return base::text_at(obstacle, "/reason") == kContested; });
}

std::string first_reason(const json::value& container) {
  return reason_of(base::text_at(container, "/obstacles/0/reason"));
}

/// Adds a container to what is known of its pod.
void add(const json::value& container, Sandbox& sandbox) {
  if (is_false(container, "/isolated")) {
    if (!sandbox.condition || sandbox.condition->status == "True") {
      sandbox.condition = Condition{"False", first_reason(container), ""};
    }
    append(sandbox.condition->message, why_not(container));
    sandbox.is_contested = sandbox.is_contested || is_contested(container);
  } else if (is_true(container, "/isolated")) {
    if (!sandbox.condition) sandbox.condition = Condition{"True", "Isolated", ""};
    if (sandbox.condition->status == "False") return;
    append(sandbox.condition->message,
           name_of(container) + " is alone on CPUs " + base::text_at(container, "/cpus"));
  }
}

Sandbox read_sandbox(const json::value& view) {
  Sandbox sandbox{.id = base::text_at(view, "/id"),
                  .pod_uid = base::text_at(view, "/pod_uid"),
                  .is_placed = !is_true(view, "/observed") && !is_true(view, "/released"),
                  .drift = base::number_at(view, "/drift")};
  for (const json::value& container : base::elements_at(view, "/containers")) {
    if (!is_true(container, "/exited")) add(container, sandbox);
  }
  if (sandbox.condition && is_false(view, "/seen")) {
    sandbox.condition = Condition{"Unknown", "Unseen", base::text_at(view, "/trouble")};
  }
  return sandbox;
}

Result<json::value> parse(std::string_view text, const char* name, std::string_view must_have) {
  auto document = base::parse_json(text, name);
  if (!document || base::find_at(*document, must_have) != nullptr) return document;
  return base::fail(ErrorCode::kInvalid, std::string(name) + ": not a response of the daemon");
}

NodeState state_of(std::string_view verdict) {
  if (verdict == "ok") return NodeState::kKept;
  if (verdict == "degraded") return NodeState::kDegraded;
  return verdict == "violated" ? NodeState::kBroken : NodeState::kUnknown;
}

}  // namespace

std::string_view state_name(NodeState state) {
  switch (state) {
    case NodeState::kKept:
      return "kept";
    case NodeState::kDegraded:
      return "degraded";
    case NodeState::kObserved:
      return "observed";
    case NodeState::kDisabled:
      return "disabled";
    case NodeState::kUnknown:
      return "unknown";
    case NodeState::kBroken:
      return "broken";
  }
  return "";
}

Result<std::vector<Sandbox>> read_sandboxes(std::string_view list) {
  const auto document = parse(list, "/v1/sandboxes", "/sandboxes");
  if (!document) return unexpected(document.error());
  std::vector<Sandbox> sandboxes;
  for (const json::value& view : base::elements_at(*document, "/sandboxes")) {
    sandboxes.push_back(read_sandbox(view));
  }
  return sandboxes;
}

Result<std::vector<Drift>> read_drifts(std::string_view drifts) {
  const auto document = parse(drifts, "/v1/drifts", "/drifts");
  if (!document) return unexpected(document.error());
  std::vector<Drift> all;
  for (const json::value& drift : base::elements_at(*document, "/drifts")) {
    all.push_back({base::number_at(drift, "/sequence"), base::text_at(drift, "/sandbox"),
                   base::text_at(drift, "/text")});
  }
  return all;
}

Result<NodeState> read_node(std::string_view node, std::string_view report) {
  const auto document = parse(node, "/v1/node", "/enabled");
  if (!document) return unexpected(document.error());
  const auto verified = parse(report, "/v1/verify", "/verdict");
  if (!verified) return unexpected(verified.error());
  if (!is_true(*document, "/enabled")) return NodeState::kDisabled;
  if (is_true(*document, "/observe")) return NodeState::kObserved;
  return state_of(base::text_at(*verified, "/verdict"));
}

void NodeHealth::record(NodeState reading) {
  record_answer();
  violations_ = reading == NodeState::kBroken ? violations_ + 1 : 0;
  if (violations_ == 0 || violations_ >= kViolations) state_ = reading;
}

std::optional<NodeState> NodeHealth::state() const {
  return is_away() ? NodeState::kBroken : state_;
}

}  // namespace ka::cluster
