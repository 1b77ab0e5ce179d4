// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/resource_classes.hpp"

namespace ka::messages {

using policy::ClassKind;
using policy::plan::ClassRefusal;

std::string refusal_text(const policy::plan::RequestedClass& request) {
  const bool is_scheduling = request.kind == ClassKind::kScheduling;
  switch (*request.refusal) {
    case ClassRefusal::kNotAllowed:
      return "allow_annotations does not list " + std::string(policy::info_of(request.kind).name);
    case ClassRefusal::kUnknown:
      return "no class of that name is configured";
    case ClassRefusal::kNoValue:
      return std::string("the class has no ") + (is_scheduling ? "nice" : "io_weight");
    case ClassRefusal::kShared:
      break;
  }
  return is_scheduling ? "its vCPUs also run containers with another nice value, or none"
                       : "other containers of its sandbox have another weight, or none";
}

}  // namespace ka::messages
