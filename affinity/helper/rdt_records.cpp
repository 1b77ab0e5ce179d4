// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/rdt_record.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "affinity/helper/rdt_json.hpp"
#include "affinity/helper/record_file.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace ka::helper {
namespace {

namespace json = boost::json;
using base::ErrorCode;
using base::Result;

constexpr int kVersion = 1;

json::object task_to_json(const policy::ThreadKey& thread, const RdtTask& task) {
  json::object object = to_json(thread);
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
  records.groups[name] = read_shares(fields);
  fields.finish();
}

void read_task(const json::value& value, const std::string& path, base::InputError& errors,
               RdtRecords& records) {
  RdtTask task;
  base::Fields fields(value, path, errors);
  fields.require({"class", "group", "monitor"});
  const policy::ThreadKey thread = read_thread(fields);
  fields.read("class", task.name);
  if (!records.groups.contains(task.name)) fields.reject("class", "is not recorded");
  read_group(fields, "group", task.theirs.group);
  read_group(fields, "monitor", task.theirs.monitor);
  fields.finish();
  records.tasks[thread] = std::move(task);
}

}  // namespace

std::string to_text(const RdtRecords& records, const std::string& boot_id) {
  json::array groups, tasks;
  for (const auto& [name, shares] : records.groups) {
    json::object object = to_json(shares);
    object["class"] = name;
    groups.push_back(std::move(object));
  }
  for (const auto& [thread, task] : records.tasks) tasks.push_back(task_to_json(thread, task));
  return json::serialize(json::object{{"version", kVersion},
                                      {"boot_id", boot_id},
                                      {"groups", std::move(groups)},
                                      {"tasks", std::move(tasks)}}) +
         '\n';
}

Result<RdtRecords> rdt_from_text(std::string_view text, const std::string& boot_id) {
  const auto document = base::parse_json(text, "resctrl.json");
  if (!document) return unexpected(document.error());
  base::InputError errors;
  base::Fields fields(*document, "", errors);
  fields.require({"version", "boot_id", "groups", "tasks"});
  int version = 0;
  fields.read("version", version);
  if (version != kVersion) return base::fail(ErrorCode::kInvalid, "unknown version");
  std::string boot;
  fields.read("boot_id", boot);
  RdtRecords records;
  fields.each("groups", [&](const json::value& value, const std::string& path) {
    read_class(value, path, errors, records);
  });
  fields.each("tasks", [&](const json::value& value, const std::string& path) {
    read_task(value, path, errors, records);
  });
  fields.finish();
  if (!errors.empty()) return unexpected(errors.error());
  if (boot != boot_id) return base::fail(ErrorCode::kGone, "of another boot");
  return records;
}

Result<RdtRecords> RdtRecordFile::load() const {
  const auto text = base::read_regular_file(path_, kMaxRecords);
  if (!text && text.error().code == ErrorCode::kGone) return RdtRecords{};
  auto records = text ? rdt_from_text(*text, boot_id_) : unexpected(text.error());
  if (!records && records.error().code == ErrorCode::kGone) return RdtRecords{};
  return records;
}

Result<void> RdtRecordFile::save(const RdtRecords& records) const {
  if (!records.empty()) return base::write_atomically(path_, to_text(records, boot_id_));
  std::error_code failed;
  std::filesystem::remove(path_, failed);
  if (!failed) return {};
  return base::fail_errno(failed.value(), "cannot remove " + path_.string());
}

}  // namespace ka::helper
