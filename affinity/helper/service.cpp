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

Result<CpuSet> read_cpus(const std::string& body) {
  const auto document = base::parse_json(body, "body");
  if (!document) return unexpected(document.error());
  base::InputError errors;
  base::Fields fields(*document, "", errors);
  fields.require({"cpus"});
  CpuSet cpus;
  fields.read("cpus", cpus);
  fields.finish();
  if (!errors.empty()) return unexpected(errors.error());
  return cpus;
}

}  // namespace

std::string to_text(const State& state) {
  json::array kinds;
  for (const KindState& kind : state.kinds) kinds.push_back(to_json(kind));
  return json::serialize(json::object{{"cpus", policy::format_list(state.quiet)},
                                      {"kinds", std::move(kinds)},
                                      {"problem", state.problem}}) +
         '\n';
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
  const auto cpus = read_cpus(body);
  const auto done = cpus ? apply(*cpus) : unexpected(cpus.error());
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

Result<void> Service::apply(const CpuSet& requested) {
  const auto admitted = admit_now(requested);
  if (!admitted) return unexpected(admitted.error());
  keeper_.keep_off(*admitted, machine_.online() - *admitted);
  return {};
}

/// While that cannot be judged, all stays as it is.
void Service::check() {
  if (!apply(keeper_.quiet())) keeper_.check();
}

}  // namespace ka::helper
