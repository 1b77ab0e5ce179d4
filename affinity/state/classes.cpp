// SPDX-License-Identifier: Apache-2.0
#include "affinity/state/classes.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/files.hpp"

namespace ka::state {
namespace {

namespace json = boost::json;

/// Nice values may be negative, and Fields reads none that are: values are written as text.
std::string to_text(int value) { return std::to_string(value); }

json::array to_json(const std::set<int>& values) {
  json::array array;
  for (const int value : values) array.emplace_back(to_text(value));
  return array;
}

int read_number(base::Fields& fields, std::string_view name, const std::string& text) {
  const bool is_negative = text.starts_with('-');
  const auto number = base::parse_number(text.substr(is_negative ? 1 : 0));
  if (!number || *number > 10000) {
    fields.reject(name, "must be a number");
    return 0;
  }
  return static_cast<int>(is_negative ? -*number : *number);
}

template <typename Saved>
void read_values(base::Fields& fields, Saved& saved) {
  fields.require({"theirs", "ours"});
  std::string theirs = "0";
  std::vector<std::string> ours;
  fields.read("theirs", theirs);
  fields.read("ours", ours);
  saved.theirs = read_number(fields, "theirs", theirs);
  for (const std::string& value : ours) saved.ours.insert(read_number(fields, "ours", value));
}

SavedNice read_nice(const json::value& value, const std::string& path,
                    base::InputError& input_error) {
  SavedNice nice;
  std::int64_t start_time = 0;
  base::Fields fields(value, path, input_error);
  fields.require({"pid", "tid", "start_time"});
  fields.read("pid", nice.key.pid);
  fields.read("tid", nice.key.tid);
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

}  // namespace

json::object to_json(const SavedClasses& classes) {
  json::array nices;
  for (const SavedNice& nice : classes.nices) {
    nices.push_back(json::object{{"pid", nice.key.pid},
                                 {"tid", nice.key.tid},
                                 {"start_time", nice.key.start_time},
                                 {"theirs", to_text(nice.theirs)},
                                 {"ours", to_json(nice.ours)}});
  }
  json::object object{{"nices", std::move(nices)}};
  if (classes.io_weight) {
    object["io_weight"] = json::object{{"directory", classes.io_weight->directory},
                                       {"theirs", to_text(classes.io_weight->theirs)},
                                       {"ours", to_json(classes.io_weight->ours)}};
  }
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
  fields.finish();
  return classes;
}

}  // namespace ka::state
