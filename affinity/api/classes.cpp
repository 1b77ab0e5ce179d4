// SPDX-License-Identifier: Apache-2.0
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>

#include "affinity/api/encode.hpp"
#include "affinity/line/rdt.hpp"
#include "affinity/line/views.hpp"
#include "affinity/messages/resource_classes.hpp"

namespace ka::api {
namespace {

namespace json = boost::json;

template <typename Value>
json::value or_null(const std::optional<Value>& value) {
  return value ? json::value(*value) : json::value();
}

json::object to_json(const line::SandboxView& view, const policy::plan::RequestedClass& request) {
  const std::string problem = line::rdt_problem(view, request);
  json::object object{{"container", request.container},
                      {"kind", policy::info_of(request.kind).name},
                      {"name", request.name},
                      {"granted", !request.refusal && problem.empty()}};
  if (!problem.empty()) {
    object["reason"] = "unset";
    object["text"] = problem;
  }
  if (!request.refusal) return object;
  object["reason"] = policy::plan::refusal_name(*request.refusal);
  object["text"] = messages::refusal_text(request);
  return object;
}

json::object to_json(const line::SandboxView& view, const line::RdtVcpu& one) {
  const std::string problem = line::rdt_problem(view, one);
  json::object object{{"vcpu", one.vcpu},
                      {"tid", one.key.tid},
                      {"wanted", one.name},
                      {"drift", !view.released && !problem.empty()}};
  if (!problem.empty()) object["problem"] = problem;
  return object;
}

/// The wanted and the actual value of something.
template <typename View>
json::object value_to_json(const View& view, bool is_released) {
  json::object object{{"wanted", or_null(view.wanted)},
                      {"actual", or_null(view.actual)},
                      {"drift", !is_released && view.drifted()}};
  if (!view.problem.empty()) object["problem"] = view.problem;
  return object;
}

}  // namespace

json::object classes_to_json(const line::SandboxView& view) {
  json::array requests, nice, limits, rdt;
  for (const auto& one : view.classes.requests) requests.push_back(to_json(view, one));
  for (const auto& one : view.classes.rdt) rdt.push_back(to_json(view, one));
  for (const line::NiceView& one : view.classes.nice) {
    json::object object = value_to_json(one, view.released);
    object["vcpu"] = one.vcpu;
    object["tid"] = one.key.tid;
    nice.push_back(std::move(object));
  }
  for (const line::IoMaxView& one : view.classes.io_max) {
    json::object object = value_to_json(one, view.released);
    object["disk"] = one.disk;
    limits.push_back(std::move(object));
  }
  return {{"requests", std::move(requests)},
          {"nice", std::move(nice)},
          {"io_weight", value_to_json(view.classes.io_weight, view.released)},
          {"io_max", std::move(limits)},
          {"rdt", std::move(rdt)}};
}

}  // namespace ka::api
