// SPDX-License-Identifier: Apache-2.0
// Whether a container owns its CPUs, and the evidence (docs/understand/sources.md, "Which source
// decides").
#pragma once

#include <string_view>

namespace ka::policy::ledger {

/// By falling weight: the first that applies decides.
enum class Basis {
  kOperator,      ///< `exclusive` given by the API
  kKubelet,       ///< kubelet's state file
  kManaged,       ///< we gave them to it (mode = "managed")
  kDra,           ///< the claims that its environment names, against those prepared
  kPodResources,  ///< kubelet's PodResources API
  kBefore,        ///< the decision from before a restart
  kQuota,         ///< the quota equals the set, which no other pod has
  kRequest,       ///< no quota; the request equals the set, which no other container has
  kSet,           ///< none of these: shared
};

/// "operator", "kubelet", "managed", "dra", "pod-resources", "before-restart", "quota", "request",
/// "set".
std::string_view basis_name(Basis basis);

struct Ownership {
  bool exclusive = false;
  Basis basis = Basis::kSet;
  /// No authoritative source decided, and the container's spec alone does not prove it.
  bool in_doubt = false;

  bool operator==(const Ownership&) const = default;
};

}  // namespace ka::policy::ledger
