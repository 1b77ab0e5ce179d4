// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/partition.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <set>
#include <string>
#include <utility>

#include "affinity/documents/thread.hpp"

namespace ka::documents {
namespace {

namespace json = boost::json;
using policy::Partition;
using policy::ThreadKey;

void check_container(const Partition& partition, base::Fields& fields) {
  if (!partition.vcpus.empty()) fields.reject("vcpus", "are none where it is a container's");
  if (partition.priority > 0) fields.reject("priority", "is only for vCPUs");
  if (partition.full_power) fields.reject("full_power", "is only for vCPUs");
}

ThreadKey read_thread_at(const json::value& value, const std::string& path,
                         base::InputError& errors) {
  base::Fields fields(value, path, errors);
  const ThreadKey thread = read_thread(fields);
  fields.finish();
  return thread;
}

}  // namespace

json::object to_json(const Partition& partition) {
  json::array vcpus;
  for (const ThreadKey& thread : partition.vcpus) vcpus.push_back(to_json(thread));
  return {{"vmm", to_json(partition.vmm)},
          {"cpus", policy::format_list(partition.cpus)},
          {"vcpus", std::move(vcpus)},
          {"priority", partition.priority},
          {"full_power", partition.full_power},
          {"of_container", partition.of_container},
          {"unbalanced", partition.is_unbalanced}};
}

Partition read_partition(base::Fields& fields, base::InputError& errors) {
  Partition partition;
  std::set<int> seen;
  fields.require({"vmm", "cpus", "vcpus", "priority", "full_power"});
  if (const json::value* vmm = fields.find("vmm")) {
    partition.vmm = read_thread_at(*vmm, fields.path("vmm"), errors);
  }
  fields.read("cpus", partition.cpus);
  if (partition.cpus.empty()) fields.reject("cpus", "has no CPU");
  fields.each("vcpus", [&](const json::value& value, const std::string& path) {
    const ThreadKey thread = read_thread_at(value, path, errors);
    if (thread.pid != partition.vmm.pid) errors.add(path, "is not a thread of the VMM");
    if (!seen.insert(thread.tid).second) errors.add(path, "is there twice");
    partition.vcpus.push_back(thread);
  });
  fields.read("priority", partition.priority);
  if (partition.priority > policy::kMostPriority) fields.reject("priority", "is above 49");
  fields.read("full_power", partition.full_power);
  fields.read("of_container", partition.of_container);
  fields.read("unbalanced", partition.is_unbalanced);
  if (partition.of_container) {
    check_container(partition, fields);
  } else if (partition.vcpus.empty()) {
    fields.reject("vcpus", "has no vCPU");
  }
  return partition;
}

}  // namespace ka::documents
