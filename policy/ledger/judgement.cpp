// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/judgement.hpp"

namespace ka::policy::ledger {

std::string_view basis_name(Basis basis) {
  switch (basis) {
    case Basis::kOperator:
      return "operator";
    case Basis::kKubelet:
      return "kubelet";
    case Basis::kManaged:
      return "managed";
    case Basis::kDra:
      return "dra";
    case Basis::kPodResources:
      return "pod-resources";
    case Basis::kBefore:
      return "before-restart";
    case Basis::kQuota:
      return "quota";
    case Basis::kRequest:
      return "request";
    case Basis::kSet:
      return "set";
  }
  return {};
}

}  // namespace ka::policy::ledger
