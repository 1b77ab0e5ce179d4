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
          {"full_power", partition.full_power}};
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
  if (partition.vcpus.empty()) fields.reject("vcpus", "has no vCPU");
  fields.read("priority", partition.priority);
  if (partition.priority > policy::kMostPriority) fields.reject("priority", "is above 49");
  fields.read("full_power", partition.full_power);
  return partition;
}

}  // namespace ka::documents
