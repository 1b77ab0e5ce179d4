// SPDX-License-Identifier: Apache-2.0
#include "affinity/state/guest.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace ka::state {
namespace {

namespace json = boost::json;
using policy::format_list;

json::object writes_to_json(const policy::GuestWrites& writes) {
  json::array containers;
  for (const auto& [id, cpus] : writes.containers) {
    containers.push_back(json::object{{"id", id}, {"cpus", format_list(cpus)}});
  }
  return {{"address", writes.address},
          {"by_kata", writes.by_kata},
          {"containers", std::move(containers)}};
}

json::object history_to_json(const policy::plan::PlugHistory& history) {
  json::array groups;
  for (const policy::VcpuSet& group : history.groups) {
    groups.push_back(json::object{{"vcpus", format_list(group)}});
  }
  return {{"from_boot", history.from_boot},
          {"is_late", history.is_late},
          {"settled", history.complete},
          {"groups", std::move(groups)}};
}

policy::GuestWrites read_writes(const json::value& value, const std::string& path,
                                base::InputError& input_error) {
  policy::GuestWrites writes;
  base::Fields fields(value, path, input_error);
  fields.read("address", writes.address);
  fields.read("by_kata", writes.by_kata);
  fields.each("containers", [&](const json::value& element, const std::string& at) {
    std::string id;
    base::Fields container(element, at, input_error);
    container.require({"id", "cpus"});
    container.read("id", id);
    container.read("cpus", writes.containers[id]);
    container.finish();
  });
  fields.finish();
  return writes;
}

policy::plan::PlugHistory read_history(const json::value& value, const std::string& path,
                                       base::InputError& input_error) {
  policy::plan::PlugHistory history;
  base::Fields fields(value, path, input_error);
  fields.read("from_boot", history.from_boot);
  fields.read("is_late", history.is_late);
  fields.read("settled", history.complete);
  fields.each("groups", [&](const json::value& element, const std::string& at) {
    base::Fields group(element, at, input_error);
    group.read("vcpus", history.groups.emplace_back());
    group.finish();
  });
  fields.finish();
  return history;
}

}  // namespace

json::object to_json(const SavedGuest& guest) {
  return {{"told", writes_to_json(guest.writes)}, {"plugged", history_to_json(guest.plugged)}};
}

SavedGuest read_guest(const json::value& value, base::InputError& input_error) {
  SavedGuest guest;
  base::Fields fields(value, "guest", input_error);
  if (const json::value* writes = fields.find("told")) {
    guest.writes = read_writes(*writes, fields.path("told"), input_error);
  }
  if (const json::value* plugged = fields.find("plugged")) {
    guest.plugged = read_history(*plugged, fields.path("plugged"), input_error);
  }
  fields.finish();
  return guest;
}

}  // namespace ka::state
