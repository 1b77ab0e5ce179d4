// SPDX-License-Identifier: Apache-2.0
#include "affinity/quotas/verb.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "affinity/documents/thread.hpp"
#include "affinity/helper_client/document.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"

namespace ka::quotas {
namespace {

namespace json = boost::json;

void read_thread(const json::value& value, const std::string& path, base::InputError& wrong,
                 State& state) {
  int tid = 0;
  std::string problem;
  base::Fields fields(value, path, wrong);
  fields.require({"tid", "problem"});
  fields.read("tid", tid);
  helper_client::read_text(fields, "problem", problem, base::kMaxSentence);
  fields.finish();
  state.problems[tid] = std::move(problem);
}

}  // namespace

http::Request Verb::request(const Wanted& wants) {
  json::array array;
  for (const auto& [container, threads] : wants) {
    for (const policy::ThreadKey& thread : threads) array.push_back(documents::to_json(thread));
  }
  return {"POST", "/v1/quotas", json::serialize(json::object{{"threads", std::move(array)}})};
}

base::Result<State> Verb::read(std::string_view document) {
  State state;
  auto problem = helper_client::read_rows(
      document, "threads",
      [&](const json::value& value, const std::string& path, base::InputError& wrong) {
        read_thread(value, path, wrong, state);
      });
  if (!problem) return unexpected(std::move(problem.error()));
  state.problem = *std::move(problem);
  return state;
}

}  // namespace ka::quotas
