// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/power_records.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <iterator>

#include "policy/facts/id_set.hpp"

namespace ka::helper {
namespace {

namespace json = boost::json;

PowerSetting read_setting(base::Fields& fields) {
  std::string file;
  fields.read("file", file);
  const auto found = std::ranges::find(kPowerSettings, file, power_file);
  if (found != std::end(kPowerSettings)) return *found;
  fields.reject("file", "is not known");
  return PowerSetting::kLatency;
}

void read_value(const json::value& value, const std::string& path, base::InputError& errors,
                PowerRecords& records) {
  int cpu = 0;
  PowerRecord record;
  base::Fields fields(value, path, errors);
  fields.require({"cpu", "file", "theirs", "ours"});
  fields.read("cpu", cpu);
  if (cpu >= policy::kMaxIds) fields.reject("cpu", "is too large");
  const PowerSetting setting = read_setting(fields);
  fields.read("theirs", record.theirs);
  fields.read("ours", record.ours);
  fields.finish();
  records.values[{cpu, setting}] = std::move(record);
}

void read_request(const json::value& value, const std::string& path, base::InputError& errors,
                  policy::PowerRequests& requests) {
  int cpu = 0;
  policy::PowerRequest request{.latency = {}, .governor = {}, .is_required = true};
  base::Fields fields(value, path, errors);
  fields.require({"cpu", "latency", "governor"});
  fields.read("cpu", cpu);
  if (cpu >= policy::kMaxIds) fields.reject("cpu", "is too large");
  fields.read("latency", request.latency);
  fields.read("governor", request.governor);
  fields.finish();
  requests[cpu] = std::move(request);
}

}  // namespace

void PowerRecords::write(json::object& document) const {
  json::array array;
  for (const auto& [key, record] : values) {
    array.push_back({{"cpu", key.first},
                     {"file", power_file(key.second)},
                     {"theirs", record.theirs},
                     {"ours", record.ours}});
  }
  document["values"] = std::move(array);
  json::array requests;
  for (const auto& [cpu, request] : requested) {
    requests.push_back(
        {{"cpu", cpu}, {"latency", request.latency}, {"governor", request.governor}});
  }
  document["requested"] = std::move(requests);
}

PowerRecords PowerRecords::read(base::Fields& fields, base::InputError& errors) {
  PowerRecords records;
  fields.require({"values"});
  fields.each("values", [&](const json::value& value, const std::string& path) {
    read_value(value, path, errors, records);
  });
  fields.each("requested", [&](const json::value& value, const std::string& path) {
    read_request(value, path, errors, records.requested);
  });
  return records;
}

}  // namespace ka::helper
