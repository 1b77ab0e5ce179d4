// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/rdt.hpp"

#include <boost/json/value.hpp>
#include <string>

namespace ka::documents {
namespace {

using policy::RdtShares;

/// Leaves `into` as it is where the key is absent.
template <typename Value, typename Parse>
void read(base::Fields& fields, std::string_view name, std::optional<Value>& into, Parse parse) {
  std::string text;
  if (!fields.read(name, text)) return;
  into = parse(text);
  if (!into) fields.reject(name, "is not a share");
}

}  // namespace

boost::json::object to_json(const RdtShares& shares) {
  boost::json::object object;
  if (shares.l3) object["l3"] = policy::format_share(*shares.l3);
  if (shares.l2) object["l2"] = policy::format_share(*shares.l2);
  if (shares.mba) object["mba"] = policy::format_bandwidth(*shares.mba);
  return object;
}

RdtShares read_shares(base::Fields& fields) {
  RdtShares shares;
  read(fields, "l3", shares.l3, policy::parse_cache_share);
  read(fields, "l2", shares.l2, policy::parse_cache_share);
  read(fields, "mba", shares.mba, policy::parse_bandwidth);
  return shares;
}

}  // namespace ka::documents
