// SPDX-License-Identifier: Apache-2.0
#include "affinity/state/classes.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/documents/specs.hpp"
#include "policy/facts/io_limits.hpp"

namespace ka::state {
namespace {

namespace json = boost::json;

constexpr int kMost = 10000;  ///< the highest weight; nice values are smaller

template <typename Value>
json::array to_json(const std::set<Value>& values) {
  json::array array;
  for (const Value& value : values) array.emplace_back(value);
  return array;
}

int to_value(base::Fields& fields, std::string_view name, std::int64_t number) {
  if (number >= -kMost && number <= kMost) return static_cast<int>(number);
  fields.reject(name, "must be a nice value or a weight");
  return 0;
}

template <typename Saved>
void read_values(base::Fields& fields, Saved& saved) {
  fields.require({"theirs", "ours"});
  std::int64_t theirs = 0;
  std::vector<std::int64_t> ours;
  fields.read("theirs", theirs);
  fields.read("ours", ours);
  saved.theirs = to_value(fields, "theirs", theirs);
  for (const std::int64_t value : ours) saved.ours.insert(to_value(fields, "ours", value));
}

SavedNice read_nice(const json::value& value, const std::string& path,
                    base::InputError& input_error) {
  SavedNice nice;
  std::int64_t start_time = 0;
  base::Fields fields(value, path, input_error);
  fields.require({"pid", "tid", "start_time"});
  documents::read_pid(fields, "pid", nice.key.pid);
  documents::read_pid(fields, "tid", nice.key.tid);
  fields.read("start_time", start_time);
  nice.key.start_time = static_cast<std::uint64_t>(start_time);
  read_values(fields, nice);
  fields.finish();
  return nice;
}

SavedIoWeight read_weight(const json::value& value, base::InputError& input_error) {
  SavedIoWeight weight;
  base::Fields fields(value, "classes.io_weight", input_error);
  fields.require({"directory"});
  fields.read("directory", weight.directory);
  read_values(fields, weight);
  fields.finish();
  return weight;
}

/// It was written by us, in the kernel's form.
void check_limits(base::Fields& fields, std::string_view name, const std::string& disk,
                  const std::string& limits) {
  const auto parsed = policy::parse_io_limits(disk + ' ' + limits, '\n');
  if (parsed != policy::IoLimits{{disk, limits}}) fields.reject(name, "are not limits of a disk");
}

SavedIoMax read_io_max(const json::value& value, const std::string& path,
                       base::InputError& input_error) {
  SavedIoMax saved;
  std::vector<std::string> ours;
  base::Fields fields(value, path, input_error);
  fields.require({"directory", "disk", "theirs", "ours"});
  fields.read("directory", saved.directory);
  fields.read("disk", saved.disk);
  fields.read("theirs", saved.theirs);
  fields.read("ours", ours);
  check_limits(fields, "theirs", saved.disk, saved.theirs);
  for (const std::string& limits : ours) check_limits(fields, "ours", saved.disk, limits);
  saved.ours = {ours.begin(), ours.end()};
  fields.finish();
  return saved;
}

json::array io_max_to_json(const std::vector<SavedIoMax>& all) {
  json::array array;
  for (const SavedIoMax& one : all) {
    array.push_back({{"directory", one.directory},
                     {"disk", one.disk},
                     {"theirs", one.theirs},
                     {"ours", to_json(one.ours)}});
  }
  return array;
}

}  // namespace

json::object to_json(const SavedClasses& classes) {
  json::array nices;
  for (const SavedNice& nice : classes.nices) {
    nices.push_back(json::object{{"pid", nice.key.pid},
                                 {"tid", nice.key.tid},
                                 {"start_time", nice.key.start_time},
                                 {"theirs", nice.theirs},
                                 {"ours", to_json(nice.ours)}});
  }
  json::object object{{"nices", std::move(nices)}};
  if (classes.io_weight) {
    object["io_weight"] = json::object{{"directory", classes.io_weight->directory},
                                       {"theirs", classes.io_weight->theirs},
                                       {"ours", to_json(classes.io_weight->ours)}};
  }
  if (!classes.io_max.empty()) object["io_max"] = io_max_to_json(classes.io_max);
  return object;
}

SavedClasses read_classes(const json::value& value, base::InputError& input_error) {
  SavedClasses classes;
  base::Fields fields(value, "classes", input_error);
  fields.each("nices", [&](const json::value& element, const std::string& path) {
    classes.nices.push_back(read_nice(element, path, input_error));
  });
  if (const json::value* weight = fields.find("io_weight")) {
    classes.io_weight = read_weight(*weight, input_error);
  }
  fields.each("io_max", [&](const json::value& element, const std::string& path) {
    classes.io_max.push_back(read_io_max(element, path, input_error));
  });
  fields.finish();
  return classes;
}

}  // namespace ka::state
