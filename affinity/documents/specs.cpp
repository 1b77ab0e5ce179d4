// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/specs.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace ka::documents {
namespace {

constexpr const char* kWhatTheyName =
    "must name classes by annotations such as scheduling-class.resource-policy.nri.io, a grade by "
    "kata-affinity.io/grade, or CRI-O's tuning of CPUs such as irq-load-balancing.crio.io";

bool is_known(std::string_view annotation) {
  return policy::is_class_request(annotation) || policy::is_tuning_request(annotation);
}

}  // namespace

void read_annotations(base::Fields& fields, policy::Annotations& annotations,
                      policy::GradeRequest& grade) {
  const boost::json::value* value = fields.find("annotations");
  if (value == nullptr) return;
  if (!value->is_object()) return fields.reject("annotations", "must be an object");
  const auto& object = value->get_object();
  if (object.size() > policy::kMaxAnnotations) {
    return fields.reject("annotations", "are too many");
  }
  policy::Annotations read;
  for (const auto& [key, name] : object) {
    const bool is_name = name.is_string() && base::is_printable(name.get_string(), base::kMaxName);
    if (key == policy::kGradeAnnotation && is_name) {
      grade = policy::parse_grade_request(name.get_string());
      continue;
    }
    if (!is_known(key) || !base::is_printable(key, base::kMaxName) || !is_name) {
      return fields.reject("annotations", kWhatTheyName);
    }
    read[key] = std::string(name.get_string());
  }
  annotations = std::move(read);
}

boost::json::object to_json(const policy::Annotations& annotations, policy::GradeRequest grade) {
  boost::json::object object;
  for (const auto& [key, name] : annotations) object[key] = name;
  if (grade != policy::GradeRequest::kNone) {
    object[policy::kGradeAnnotation] = policy::grade_request_name(grade);
  }
  return object;
}

}  // namespace ka::documents
