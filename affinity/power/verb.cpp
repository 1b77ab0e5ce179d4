// SPDX-License-Identifier: Apache-2.0
#include "affinity/power/verb.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "affinity/helper_client/document.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::power {
namespace {

namespace json = boost::json;

void read_problem(const json::value& value, const std::string& path, base::InputError& wrong,
                  State& state) {
  int cpu = 0;
  policy::PowerProblem problem;
  base::Fields fields(value, path, wrong);
  fields.require({"cpu", "latency", "governor"});
  fields.read("cpu", cpu);
  if (cpu < 0 || cpu >= policy::kMaxIds) fields.reject("cpu", "is not a CPU");
  helper_client::read_text(fields, "latency", problem.latency, base::kMaxSentence);
  helper_client::read_text(fields, "governor", problem.governor, base::kMaxSentence);
  fields.finish();
  state.problems[cpu] = std::move(problem);
}

}  // namespace

http::Request Verb::request(const Wanted& requests) {
  json::array array;
  for (const auto& [cpu, request] : requests) {
    array.push_back({{"cpus", std::to_string(cpu)},
                     {"latency", request.latency},
                     {"governor", request.governor}});
  }
  return {"POST", "/v1/power", json::serialize(json::object{{"cpus", std::move(array)}})};
}

base::Result<State> Verb::read(std::string_view document) {
  State state;
  auto problem = helper_client::read_rows(
      document, "problems",
      [&](const json::value& value, const std::string& path, base::InputError& wrong) {
        read_problem(value, path, wrong, state);
      });
  if (!problem) return unexpected(std::move(problem.error()));
  state.problem = *std::move(problem);
  return state;
}

}  // namespace ka::power
