// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/specs.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace ka::documents {

void read_class_annotations(base::Fields& fields, policy::ClassAnnotations& annotations) {
  const boost::json::value* value = fields.find("annotations");
  if (value == nullptr) return;
  if (!value->is_object()) return fields.reject("annotations", "must be an object");
  const auto& object = value->get_object();
  if (object.size() > policy::kMaxClassAnnotations) {
    return fields.reject("annotations", "are too many");
  }
  policy::ClassAnnotations read;
  for (const auto& [key, name] : object) {
    const bool is_name = name.is_string() && base::is_printable(name.get_string(), base::kMaxName);
    if (!policy::is_class_request(key) || !base::is_printable(key, base::kMaxName) || !is_name) {
      return fields.reject("annotations", "must name classes by annotations such as " +
                                              std::string(policy::kClassKinds[0].annotation));
    }
    read[key] = std::string(name.get_string());
  }
  annotations = std::move(read);
}

boost::json::object to_json(const policy::ClassAnnotations& annotations) {
  boost::json::object object;
  for (const auto& [key, name] : annotations) object[key] = name;
  return object;
}

}  // namespace ka::documents
