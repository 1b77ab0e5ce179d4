// SPDX-License-Identifier: Apache-2.0
#include "vmm/libvirt/numatune.hpp"

#include <array>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace ka::libvirt {
namespace {

using base::ErrorCode;
using base::Result;
using policy::NodeSet;

/// libvirt has two parameters, numa_mode and numa_nodeset; newer ones may have more.
constexpr int kMostParameters = 8;

bool is_bound(int mode) {
  return mode == VIR_DOMAIN_NUMATUNE_MEM_STRICT || mode == VIR_DOMAIN_NUMATUNE_MEM_RESTRICTIVE;
}

}  // namespace

Result<Numatune::Now> Numatune::now(Scope scope) const {
  std::array<virTypedParameter, kMostParameters> parameters{};
  int count = kMostParameters;
  const int got =
      library_.domain_get_numa_parameters(domain_, parameters.data(), &count, flags_of(scope));
  if (got < 0) {
    const base::Error error = library_.error("virDomainGetNumaParameters");
    if (error.code == ErrorCode::kUnavailable) return Now{};
    return unexpected(error);
  }
  Now now{.known = true};
  for (const virTypedParameter& parameter : std::span(parameters).first(std::size_t(count))) {
    const std::string_view name = parameter.field;
    if (name == VIR_DOMAIN_NUMA_MODE) now.binds = is_bound(parameter.value.i);
    if (name == VIR_DOMAIN_NUMA_NODESET) {
      now.nodes = policy::parse_list<policy::NodeTag>(parameter.value.s).value_or(NodeSet{});
    }
  }
  library_.typed_params_clear(parameters.data(), count);
  return now;
}

Result<NodeSet> Numatune::read(Scope scope) const {
  const auto found = now(scope);
  if (!found) return unexpected(found.error());
  return found->nodes;
}

Result<int> Numatune::write(const MemoryOrder& order, Scope scope) const {
  const auto found = now(scope);
  if (!found) return unexpected(found.error());
  const bool live = scope == Scope::kLive;
  if (!found->known || (live && !found->binds)) return 0;
  const bool grows = live && !order.arrived;
  if (grows && found->nodes.empty()) return 0;  // any node is allowed
  const NodeSet nodes = grows ? order.nodes | found->nodes : order.nodes;
  if (nodes == found->nodes) return 0;
  std::string text = policy::format_list(nodes);
  virTypedParameter parameter{};
  std::strcpy(parameter.field, VIR_DOMAIN_NUMA_NODESET);
  parameter.type = VIR_TYPED_PARAM_STRING;
  parameter.value.s = text.data();
  if (library_.domain_set_numa_parameters(domain_, &parameter, 1, flags_of(scope)) == 0) return 1;
  base::Error error = library_.error("virDomainSetNumaParameters " + text);
  // The same code as for a domain that does not run; this one does, and cannot (no cpuset cgroup).
  if (is_gone(error)) error.code = ErrorCode::kTransient;
  return unexpected(std::move(error));
}

}  // namespace ka::libvirt
