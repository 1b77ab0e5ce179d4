// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/resource_classes.hpp"

namespace ka::messages {

using policy::ClassKind;
using policy::plan::ClassRefusal;

namespace {

struct Words {
  const char* keys;
  const char* shared;
};

Words words_of(ClassKind kind) {
  switch (kind) {
    case ClassKind::kScheduling:
      return {"nice", "its vCPUs also run containers with another nice value, or none"};
    case ClassKind::kBlockIo:
      return {"io_weight or io_max", "other containers of its sandbox have other values, or none"};
    case ClassKind::kRdt:
      break;
  }
  return {"l3, l2 or mba", "its vCPUs also run containers with another RDT class, or none"};
}

}  // namespace

std::string refusal_text(const policy::plan::RequestedClass& request) {
  const Words words = words_of(request.kind);
  switch (*request.refusal) {
    case ClassRefusal::kNotAllowed:
      return "allow_annotations does not list " + std::string(policy::info_of(request.kind).name);
    case ClassRefusal::kUnknown:
      return "no class of that name is configured";
    case ClassRefusal::kNoValue:
      return std::string("the class has no ") + words.keys;
    case ClassRefusal::kShared:
      break;
  }
  return words.shared;
}

}  // namespace ka::messages
