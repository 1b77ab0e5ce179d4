// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/service.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "base/json/json.hpp"

namespace ka::helper {
namespace {

namespace json = boost::json;
using base::Result;
using policy::CpuSet;
using policy::QuietRequest;

constexpr std::size_t kMostLeft = 64;

json::object to_json(const KindState& kind) {
  json::array left;
  for (const Left& one : kind.left) {
    if (left.size() == kMostLeft) break;
    left.push_back({{"name", one.name}, {"cpus", policy::format_list(one.cpus)}, {"why", one.why}});
  }
  return {{"kind", kind.kind},
          {"found", kind.found},
          {"moved", kind.moved},
          {"left", std::move(left)},
          {"left_total", kind.left.size()},
          {"problem", kind.problem}};
}

Result<QuietRequest> read_request(const std::string& body) {
  const auto document = base::parse_json(body, "body");
  if (!document) return unexpected(document.error());
  base::InputError errors;
  base::Fields fields(*document, "", errors);
  fields.require({"cpus"});
  QuietRequest request;
  fields.read("cpus", request.cpus);
  fields.read("interrupts", request.interrupts);
  fields.finish();
  if (!errors.empty()) return unexpected(errors.error());
  return request;
}

}  // namespace

std::string to_text(const State& state) {
  json::array kinds;
  for (const KindState& kind : state.kinds) kinds.push_back(to_json(kind));
  json::object document{{"cpus", policy::format_list(state.quiet)},
                        {"kinds", std::move(kinds)},
                        {"problem", state.problem}};
  if (!state.interrupts.empty()) document["interrupts"] = policy::format_list(state.interrupts);
  return json::serialize(document) + '\n';
}

Service::Service(Keeper& keeper, policy::Topology machine, Environment environment)
    : keeper_(keeper), machine_(std::move(machine)), environment_(std::move(environment)) {}

Verb Service::verb() {
  return {.get =
              [this] {
                keeper_.check();
                return to_text(keeper_.state());
              },
          .post = [this](const std::string& body) { return keep_off(body); }};
}

Result<std::string> Service::keep_off(const std::string& body) {
  const auto request = read_request(body);
  const auto done = request ? apply(*request) : unexpected(request.error());
  if (!done) return unexpected(done.error());
  return to_text(keeper_.state());
}

Result<CpuSet> Service::admit_now(const CpuSet& requested) {
  if (auto changed = environment_.changed_machine(machine_.online())) {
    machine_ = *std::move(changed);
  }
  if (requested.empty()) return requested;
  const auto limits = environment_.limits();
  return limits ? admit(machine_, *limits, requested) : unexpected(limits.error());
}

Result<void> Service::apply(const QuietRequest& requested) {
  const auto admitted = admit_now(requested.cpus);
  if (!admitted) return unexpected(admitted.error());
  const CpuSet interrupts = admitted_interrupts(requested) - *admitted;
  keeper_.keep_off(*admitted, machine_.online() - *admitted - interrupts, interrupts);
  return {};
}

/// What may not be must not keep the host on CPUs that it may leave.
CpuSet Service::admitted_interrupts(const QuietRequest& requested) {
  const auto admitted = admit_now(requested.cpus | requested.interrupts);
  return admitted ? *admitted & requested.interrupts : CpuSet{};
}

/// While that cannot be judged, all stays as it is.
void Service::check() {
  if (!apply({keeper_.quiet(), keeper_.interrupts()})) keeper_.check();
}

}  // namespace ka::helper
