// SPDX-License-Identifier: Apache-2.0
#include "affinity/rdt/verb.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "affinity/documents/rdt.hpp"
#include "affinity/documents/thread.hpp"
#include "affinity/helper_client/document.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"

namespace ka::rdt {
namespace {

namespace json = boost::json;
using base::Fields;
using base::InputError;
using helper_client::read_text;

json::object to_json(const Group& group) {
  json::array tasks;
  for (const policy::ThreadKey& thread : group.threads) {
    tasks.push_back(documents::to_json(thread));
  }
  return {{"class", group.name},
          {"schemata", documents::to_json(group.shares)},
          {"tasks", std::move(tasks)}};
}

void read_task(const json::value& value, const std::string& path, InputError& wrong,
               GroupState& group) {
  int tid = 0;
  std::string problem;
  Fields fields(value, path, wrong);
  fields.require({"tid", "problem"});
  fields.read("tid", tid);
  read_text(fields, "problem", problem, base::kMaxSentence);
  fields.finish();
  group.threads[tid] = std::move(problem);
}

void read_group(const json::value& value, const std::string& path, InputError& wrong,
                State& state) {
  std::string name, schemata;
  GroupState group;
  Fields fields(value, path, wrong);
  fields.require({"class", "schemata", "problem", "tasks"});
  fields.read("class", name);
  read_text(fields, "schemata", schemata, base::kMaxSentence);
  read_text(fields, "problem", group.problem, base::kMaxSentence);
  fields.each("tasks", [&](const json::value& task, const std::string& at) {
    read_task(task, at, wrong, group);
  });
  fields.finish();
  state.groups[std::move(name)] = std::move(group);
}

}  // namespace

http::Request Verb::request(const Wanted& groups) {
  json::array array;
  for (const Group& group : groups) array.push_back(to_json(group));
  return {"POST", "/v1/resctrl", json::serialize(json::object{{"groups", std::move(array)}})};
}

base::Result<State> Verb::read(std::string_view document) {
  State state;
  auto problem =
      helper_client::read_rows(document, "groups",
                               [&](const json::value& value, const std::string& path,
                                   InputError& wrong) { read_group(value, path, wrong, state); });
  if (!problem) return unexpected(std::move(problem.error()));
  state.problem = *std::move(problem);
  return state;
}

}  // namespace ka::rdt
