// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/partition_records.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "affinity/documents/partition.hpp"
#include "affinity/documents/thread.hpp"
#include "affinity/helper/cgroup_tree.hpp"
#include "base/text.hpp"

namespace ka::helper {
namespace {

namespace json = boost::json;

json::object to_json(const PartitionRecord& record) {
  json::object object = documents::to_json(record.partition);
  object["cgroup"] = record.cgroup;
  object["enabled"] = record.enabled;
  json::array scheduling;
  for (const auto& [thread, policy] : record.scheduling) {
    json::object one = documents::to_json(thread);
    one["policy"] = policy.policy;
    one["priority"] = policy.priority;
    scheduling.push_back(std::move(one));
  }
  object["scheduling"] = std::move(scheduling);
  object["giving_up"] = policy::format_list(record.giving_up);
  return object;
}

void read_cgroup(base::Fields& fields, std::string& into) {
  fields.require({"cgroup"});
  if (fields.read("cgroup", into) && !is_cgroup_path(into)) {
    fields.reject("cgroup", "is not the path of a cgroup");
  }
}

void read_scheduling(const json::value& value, const std::string& path, base::InputError& errors,
                     PartitionRecord& record) {
  SchedulingPolicy policy;
  base::Fields fields(value, path, errors);
  fields.require({"policy", "priority"});
  const policy::ThreadKey thread = documents::read_thread(fields);
  fields.read("policy", policy.policy);
  fields.read("priority", policy.priority);
  fields.finish();
  record.scheduling[thread] = policy;
}

void read_record(const json::value& value, const std::string& path, base::InputError& errors,
                 PartitionRecords& records) {
  PartitionRecord record;
  base::Fields fields(value, path, errors);
  fields.require({"enabled", "scheduling"});
  record.partition = documents::read_partition(fields, errors);
  read_cgroup(fields, record.cgroup);
  fields.read("enabled", record.enabled);
  fields.read("giving_up", record.giving_up);
  fields.each("scheduling", [&](const json::value& thread, const std::string& at) {
    read_scheduling(thread, at, errors, record);
  });
  fields.finish();
  const policy::ThreadKey vmm = record.partition.vmm;
  records.partitions[vmm] = std::move(record);
}

void read_added(const json::value& value, const std::string& path, base::InputError& errors,
                PartitionRecords& records) {
  std::string cgroup;
  policy::CpuSet cpus;
  base::Fields fields(value, path, errors);
  fields.require({"cpus"});
  read_cgroup(fields, cgroup);
  fields.read("cpus", cpus);
  fields.finish();
  records.added[std::move(cgroup)] = std::move(cpus);
}

void read_masks(base::Fields& fields, base::InputError& errors, PartitionRecords& records) {
  const json::value* masks = fields.find("kernel_masks");
  if (masks == nullptr) return;
  const json::object* object = masks->if_object();
  if (object == nullptr) return fields.reject("kernel_masks", "is not an object");
  base::Fields each(*masks, fields.path("kernel_masks"), errors);
  for (const auto& [name, value] : *object) {
    if (!base::is_printable(name)) fields.reject("kernel_masks", "has an unreadable name");
    each.read(name, records.kernel_masks[std::string(name)]);
  }
}

}  // namespace

void PartitionRecords::write(json::object& document) const {
  json::array made, above;
  for (const auto& [vmm, record] : partitions) made.push_back(to_json(record));
  for (const auto& [cgroup, cpus] : added) {
    above.push_back(json::object{{"cgroup", cgroup}, {"cpus", policy::format_list(cpus)}});
  }
  document["partitions"] = std::move(made);
  document["added"] = std::move(above);
  json::object masks;
  for (const auto& [name, cpus] : kernel_masks) masks[name] = policy::format_list(cpus);
  document["kernel_masks"] = std::move(masks);
}

PartitionRecords PartitionRecords::read(base::Fields& fields, base::InputError& errors) {
  PartitionRecords records;
  fields.require({"partitions", "added", "kernel_masks"});
  read_masks(fields, errors, records);
  fields.each("partitions", [&](const json::value& value, const std::string& path) {
    read_record(value, path, errors, records);
  });
  fields.each("added", [&](const json::value& value, const std::string& path) {
    read_added(value, path, errors, records);
  });
  return records;
}

}  // namespace ka::helper
