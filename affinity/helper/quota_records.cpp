// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/quota_records.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "affinity/helper/cgroup_tree.hpp"
#include "affinity/host/cfs_quota.hpp"

namespace ka::helper {
namespace {

namespace json = boost::json;

void read_quota(const json::value& value, const std::string& path, base::InputError& errors,
                QuotaRecords& records) {
  std::string cgroup, theirs;
  base::Fields fields(value, path, errors);
  fields.require({"cgroup", "theirs"});
  fields.read("cgroup", cgroup);
  if (!is_cgroup_path(cgroup)) fields.reject("cgroup", "is not a cgroup");
  fields.read("theirs", theirs);
  if (!host::is_cpu_quota(theirs)) fields.reject("theirs", "is not a quota");
  fields.finish();
  records.quotas[std::move(cgroup)] = std::move(theirs);
}

}  // namespace

void QuotaRecords::write(json::object& document) const {
  json::array array;
  for (const auto& [cgroup, theirs] : quotas) {
    array.push_back({{"cgroup", cgroup}, {"theirs", theirs}});
  }
  document["quotas"] = std::move(array);
}

QuotaRecords QuotaRecords::read(base::Fields& fields, base::InputError& errors) {
  QuotaRecords records;
  fields.require({"quotas"});
  fields.each("quotas", [&](const json::value& value, const std::string& path) {
    read_quota(value, path, errors, records);
  });
  return records;
}

}  // namespace ka::helper
