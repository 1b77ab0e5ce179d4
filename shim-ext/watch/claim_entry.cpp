// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/watch/claim_entry.hpp"

#include "base/text.hpp"

namespace ka::watch {

std::optional<policy::ledger::PreparedClaim> parse_claim_entry(std::string_view entry) {
  constexpr std::string_view kPrefix = "DRA_CPUSET_";
  if (!entry.starts_with(kPrefix)) return std::nullopt;
  entry.remove_prefix(kPrefix.size());
  const auto equals = entry.find('=');
  if (equals == std::string_view::npos)
    return policy::ledger::PreparedClaim{base::printable(entry), {}};
  const std::string_view list = entry.substr(equals + 1);
  auto cpus = policy::parse_list<policy::CpuTag>(list);
  const bool good = cpus && !list.ends_with('\n');
  return policy::ledger::PreparedClaim{base::printable(entry.substr(0, equals)),
                                       good ? std::move(*cpus) : policy::CpuSet{}};
}

}  // namespace ka::watch
