// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/dra/cdi_file.hpp"

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/json/json.hpp"
#include "base/json/lookup.hpp"
#include "base/text.hpp"
#include "shim-ext/watch/claim_entry.hpp"

namespace ka::dra {
namespace {

namespace json = boost::json;
using policy::ledger::PreparedClaim;

auto broken(const std::string& what) {
  return base::fail(base::ErrorCode::kInvalid, "no CDI file of dra-driver-cpu: " + what);
}

/// The only device, which is named after the claim; null where it is not like that.
const json::value& device_of(const json::value& file, std::string_view uid) {
  const auto devices = base::elements_at(file, "/devices");
  static const json::value kNone;
  const std::string name = "claim-" + std::string(uid);
  const bool good = devices.size() == 1 && base::text_in(base::member(devices[0], "name")) == name;
  return good ? devices[0] : kNone;
}

/// The claim's entry of the environment that the device adds.
std::optional<PreparedClaim> entry_of(const json::value& device, std::string_view uid) {
  for (const json::value& entry : base::elements_at(device, "/containerEdits/env")) {
    if (!entry.is_string()) return std::nullopt;
    auto claim = watch::parse_claim_entry(entry.get_string());
    if (claim && claim->uid == uid) return claim;
  }
  return std::nullopt;
}

}  // namespace

std::string_view claim_of_name(std::string_view name) {
  constexpr std::string_view kPrefix = "dra.k8s.io-cpu_claim-";
  constexpr std::string_view kSuffix = ".json";
  if (name.size() <= kPrefix.size() + kSuffix.size() || !name.starts_with(kPrefix) ||
      !name.ends_with(kSuffix)) {
    return {};
  }
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  return base::is_id(name) ? name : std::string_view();
}

base::Result<PreparedClaim> parse_cdi_file(std::string_view text, std::string_view uid) {
  const auto value = base::parse_json(text, "CDI file");
  if (!value) return broken(value.error().message);
  if (base::text_in(base::member(*value, "kind")) != "dra.k8s.io/cpu") {
    return broken("its kind is not dra.k8s.io/cpu");
  }
  const json::value& device = device_of(*value, uid);
  if (device.is_null()) return broken("it must have exactly one device, named after the claim");
  auto claim = entry_of(device, uid);
  if (!claim || claim->cpus.empty()) return broken("it has no CPUs for the claim");
  return std::move(*claim);
}

}  // namespace ka::dra
