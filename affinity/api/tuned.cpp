// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/tuned.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/line/tuned_containers.hpp"

namespace ka::api {

namespace json = boost::json;

json::array tuned_to_json(const line::Node& node) {
  json::array rows;
  for (const line::TunedContainer& one : line::tuned_containers(node)) {
    const policy::ledger::PodRecord* pod = node.registry.find(one.pod);
    for (const policy::plan::TuningRequest& request : one.tuned.requests) {
      rows.push_back({{"pod", one.pod},
                      {"pod_name", pod == nullptr ? std::string() : pod->pod_name},
                      {"container", one.id},
                      {"name", one.name},
                      {"cpus", policy::format_list(line::cpus_of(one, request))},
                      {"annotation", policy::annotation_of(request.kind)},
                      {"value", request.value},
                      {"problem", line::tuning_problem(node, one, request)}});
    }
  }
  return rows;
}

}  // namespace ka::api
