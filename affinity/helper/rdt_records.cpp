// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/rdt_records.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "affinity/documents/rdt.hpp"
#include "affinity/documents/thread.hpp"
#include "base/text.hpp"

namespace ka::helper {
namespace {

namespace json = boost::json;

json::object task_to_json(const policy::ThreadKey& thread, const RdtTask& task) {
  json::object object = documents::to_json(thread);
  object["class"] = task.name;
  object["group"] = task.theirs.group;
  object["monitor"] = task.theirs.monitor;
  return object;
}

/// A name that is empty is the root's, or that of no group.
void read_group(base::Fields& fields, std::string_view name, std::string& into) {
  if (fields.read(name, into) && !into.empty() && !is_group_name(into)) {
    fields.reject(name, "is not the name of a group");
  }
}

void read_class(const json::value& value, const std::string& path, base::InputError& errors,
                RdtRecords& records) {
  std::string name;
  base::Fields fields(value, path, errors);
  fields.require({"class"});
  fields.read("class", name);
  if (!base::is_id(name)) fields.reject("class", "is not the name of a class");
  records.groups[name] = documents::read_shares(fields);
  fields.finish();
}

void read_task(const json::value& value, const std::string& path, base::InputError& errors,
               RdtRecords& records) {
  RdtTask task;
  base::Fields fields(value, path, errors);
  fields.require({"class", "group", "monitor"});
  const policy::ThreadKey thread = documents::read_thread(fields);
  fields.read("class", task.name);
  if (!records.groups.contains(task.name)) fields.reject("class", "is not recorded");
  read_group(fields, "group", task.theirs.group);
  read_group(fields, "monitor", task.theirs.monitor);
  fields.finish();
  records.tasks[thread] = std::move(task);
}

}  // namespace

void RdtRecords::write(json::object& document) const {
  json::array classes, threads;
  for (const auto& [name, shares] : groups) {
    json::object object = documents::to_json(shares);
    object["class"] = name;
    classes.push_back(std::move(object));
  }
  for (const auto& [thread, task] : tasks) threads.push_back(task_to_json(thread, task));
  document["groups"] = std::move(classes);
  document["tasks"] = std::move(threads);
}

RdtRecords RdtRecords::read(base::Fields& fields, base::InputError& errors) {
  RdtRecords records;
  fields.require({"groups", "tasks"});
  fields.each("groups", [&](const json::value& value, const std::string& path) {
    read_class(value, path, errors, records);
  });
  fields.each("tasks", [&](const json::value& value, const std::string& path) {
    read_task(value, path, errors, records);
  });
  return records;
}

}  // namespace ka::helper
