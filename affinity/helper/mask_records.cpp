// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/mask_records.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <vector>

namespace ka::helper {
namespace {

namespace json = boost::json;
using policy::format_list;
using policy::plan::HostRecord;

json::object to_json(const MaskKey& key, const HostRecord& record, bool is_begun) {
  json::array ours;
  for (const policy::CpuSet& cpus : record.ours) ours.emplace_back(format_list(cpus));
  return {{"kind", key.first},
          {"name", key.second},
          {"theirs", format_list(record.theirs)},
          {"ours", std::move(ours)},
          {"begun", is_begun}};
}

void read_record(const json::value& value, const std::string& path, base::InputError& errors,
                 MaskRecords& records) {
  MaskKey key;
  HostRecord record;
  std::vector<std::string> ours;
  base::Fields fields(value, path, errors);
  fields.require({"kind", "name", "theirs", "ours", "begun"});
  fields.read("kind", key.first);
  fields.read("name", key.second);
  fields.read("theirs", record.theirs);
  fields.read("ours", ours);
  for (const std::string& text : ours) {
    auto cpus = policy::parse_list<policy::CpuTag>(text);
    if (cpus)
      record.ours.push_back(*std::move(cpus));
    else
      fields.reject("ours", "not a set of CPUs");
  }
  bool is_begun = false;
  fields.read("begun", is_begun);
  fields.finish();
  if (is_begun) records.begun.insert(key);
  records.masks[std::move(key)] = std::move(record);
}

json::object to_json(const std::string& kind, const std::set<std::string>& seen) {
  json::array names;
  for (const std::string& name : seen) names.emplace_back(name);
  return {{"kind", kind}, {"names", std::move(names)}};
}

void read_seen(const json::value& value, const std::string& path, base::InputError& errors,
               MaskRecords& records) {
  std::string kind;
  std::vector<std::string> names;
  base::Fields fields(value, path, errors);
  fields.require({"kind", "names"});
  fields.read("kind", kind);
  fields.read("names", names);
  fields.finish();
  records.seen[std::move(kind)] = {names.begin(), names.end()};
}

}  // namespace

void MaskRecords::write(json::object& document) const {
  document["quiet"] = format_list(quiet);
  document["interrupts"] = format_list(interrupts);
  json::array array;
  for (const auto& [key, record] : masks) {
    array.push_back(to_json(key, record, begun.contains(key)));
  }
  document["masks"] = std::move(array);
  json::array kinds;
  for (const auto& [kind, names] : seen) kinds.push_back(to_json(kind, names));
  document["seen"] = std::move(kinds);
}

MaskRecords MaskRecords::read(base::Fields& fields, base::InputError& errors) {
  MaskRecords records;
  fields.require({"quiet", "masks"});
  fields.read("quiet", records.quiet);
  fields.read("interrupts", records.interrupts);
  fields.each("masks", [&](const json::value& value, const std::string& path) {
    read_record(value, path, errors, records);
  });
  fields.each("seen", [&](const json::value& value, const std::string& path) {
    read_seen(value, path, errors, records);
  });
  return records;
}

}  // namespace ka::helper
