// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/source.hpp"

#include <algorithm>

namespace ka::policy::ledger {

const SourceTraits& traits_of(Source source) { return kSources[index_of(source)]; }

std::string_view source_name(Source source) { return traits_of(source).name; }

std::optional<Source> parse_source(std::string_view name) {
  const auto* found = std::ranges::find(kSources, name, &SourceTraits::name);
  return found == std::end(kSources) ? std::nullopt : std::optional(found->source);
}

}  // namespace ka::policy::ledger
