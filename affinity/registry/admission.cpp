// SPDX-License-Identifier: Apache-2.0
#include "affinity/registry/admission.hpp"

#include <string>

#include "base/text.hpp"
#include "policy/facts/limits.hpp"

namespace ka::registry {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

Result<void> check_id(const std::string& what, const std::string& id) {
  if (base::is_id(id)) return {};
  return fail(ErrorCode::kInvalid, what + " id \"" + base::printable(id, base::kMaxId) +
                                       "\" is not 1 to " + std::to_string(base::kMaxId) +
                                       " characters of A-Z, a-z, 0-9, \"_\", \".\", \"-\"");
}

Result<void> too_many(const std::string& what, std::size_t most) {
  return fail(ErrorCode::kConflict, "limit of " + std::to_string(most) + ' ' + what + " reached");
}

std::size_t count_containers(const policy::ledger::Ledger& ledger) {
  std::size_t count = 0;
  for (const auto& [id, pod] : ledger.pods()) count += pod.containers.size();
  return count;
}

struct Admission {
  const policy::ledger::Ledger& ledger;

  Result<void> operator()(const policy::ledger::PodSeen& event) const {
    return check_pod(event.id);
  }

  Result<void> operator()(const policy::ledger::ContainerSeen& event) const {
    if (auto good = check_pod(event.sandbox); !good) return good;
    if (auto good = check_id("container", event.id); !good) return good;
    const policy::ledger::PodRecord* pod = ledger.find(event.sandbox);
    if (pod != nullptr && pod->containers.contains(event.id)) return {};
    if (pod != nullptr && pod->containers.size() >= policy::kMaxContainers) {
      return too_many("containers in sandbox \"" + event.sandbox + '"', policy::kMaxContainers);
    }
    if (count_containers(ledger) < policy::kMaxNodeContainers) return {};
    return too_many("containers on this node", policy::kMaxNodeContainers);
  }

  /// Whatever else there is adds nothing that is not known.
  template <typename Other>
  Result<void> operator()(const Other& /*event*/) const {
    return {};
  }

  Result<void> check_pod(const std::string& id) const {
    if (auto good = check_id("sandbox", id); !good) return good;
    if (ledger.pods().size() < policy::kMaxSandboxes || ledger.find(id) != nullptr) return {};
    return too_many("sandboxes", policy::kMaxSandboxes);
  }
};

}  // namespace

Result<void> admit(const policy::ledger::Event& event, const policy::ledger::Ledger& ledger) {
  return std::visit(Admission{ledger}, event.body);
}

}  // namespace ka::registry
