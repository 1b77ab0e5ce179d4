// SPDX-License-Identifier: Apache-2.0
#include "affinity/partitions/verb.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "affinity/documents/partition.hpp"
#include "affinity/documents/thread.hpp"
#include "affinity/helper_client/document.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"

namespace ka::partitions {
namespace {

namespace json = boost::json;
using base::Fields;
using base::InputError;
using helper_client::read_text;

policy::ThreadKey read_vmm(Fields& fields, InputError& wrong) {
  const json::value* value = fields.find("vmm");
  if (value == nullptr) return {};
  Fields thread(*value, fields.path("vmm"), wrong);
  const policy::ThreadKey vmm = documents::read_thread(thread);
  thread.finish();
  return vmm;
}

void read_partition(const json::value& value, const std::string& path, InputError& wrong,
                    State& state) {
  PartitionState one;
  policy::CpuSet cpus;
  Fields fields(value, path, wrong);
  fields.require({"vmm", "cpus", "problem", "realtime_problem", "power_problem"});
  const policy::ThreadKey vmm = read_vmm(fields, wrong);
  fields.read("cpus", cpus);
  read_text(fields, "problem", one.problem, base::kMaxSentence);
  read_text(fields, "realtime_problem", one.not_realtime, base::kMaxSentence);
  read_text(fields, "power_problem", one.low_power, base::kMaxSentence);
  fields.read("undone", one.undone);
  if (one.undone < 0) fields.reject("undone", "must not be negative");
  fields.finish();
  state.partitions[vmm] = std::move(one);
}

}  // namespace

http::Request Verb::request(const Wants& wants) {
  json::array array;
  for (const auto& [id, partition] : wants) array.push_back(documents::to_json(partition));
  return {"POST", "/v1/partitions",
          json::serialize(json::object{{"partitions", std::move(array)}})};
}

base::Result<State> Verb::read(std::string_view document) {
  State state;
  auto problem = helper_client::read_rows(
      document, "partitions",
      [&](const json::value& value, const std::string& path, InputError& wrong) {
        read_partition(value, path, wrong, state);
      });
  if (!problem) return unexpected(std::move(problem.error()));
  state.problem = *std::move(problem);
  return state;
}

}  // namespace ka::partitions
