// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/power_service.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "base/json/json.hpp"
#include "base/text.hpp"
#include "policy/facts/cpu_tuning.hpp"

namespace ka::helper {
namespace {

namespace json = boost::json;
using policy::PowerRequest;
using policy::PowerRequests;

void read_requests(const json::value& value, const std::string& path, base::InputError& wrong,
                   PowerRequests& requests) {
  policy::CpuSet cpus;
  PowerRequest request{.latency = {}, .governor = {}, .is_required = true};
  base::Fields fields(value, path, wrong);
  fields.require({"cpus", "latency", "governor"});
  fields.read("cpus", cpus);
  fields.read("latency", request.latency);
  fields.read("governor", request.governor);
  if (!policy::is_resume_latency(request.latency)) fields.reject("latency", "is not a latency");
  if (!policy::is_governor(request.governor)) fields.reject("governor", "is not a governor");
  fields.finish();
  for (const int cpu : cpus) {
    if (!requests.try_emplace(cpu, request).second)
      fields.reject("cpus", "has a CPU that was there");
  }
}

}  // namespace

base::Result<PowerRequests> read_power(std::string_view body) {
  const auto document = base::parse_json(body, "body");
  if (!document) return unexpected(document.error());
  PowerRequests requests;
  base::InputError wrong;
  base::Fields fields(*document, "", wrong);
  fields.require({"cpus"});
  fields.each("cpus", [&](const json::value& value, const std::string& path) {
    read_requests(value, path, wrong, requests);
  });
  fields.finish();
  if (!wrong.empty()) return unexpected(wrong.error());
  return requests;
}

std::string power_text(const policy::PowerProblems& problems, const std::string& problem) {
  json::array array;
  for (const auto& [cpu, one] : problems) {
    array.push_back({{"cpu", cpu},
                     {"latency", base::printable(one.latency, base::kMaxSentence)},
                     {"governor", base::printable(one.governor, base::kMaxSentence)}});
  }
  return json::serialize(json::object{{"problems", std::move(array)}, {"problem", problem}}) + '\n';
}

}  // namespace ka::helper
