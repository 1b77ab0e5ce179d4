// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/dra/cdi_file.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "shim-ext/watch/claim_entry.hpp"

namespace ka::dra {
namespace {

namespace json = boost::json;
using policy::ledger::PreparedClaim;

auto broken(const std::string& what) {
  return base::fail(base::ErrorCode::kInvalid, "no CDI file of dra-driver-cpu: " + what);
}

/// Null where the object has no such member of that type.
const json::array* array_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_array();
}

const json::object* object_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

bool is_text(const json::object& object, std::string_view key, std::string_view text) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() && value->get_string() == text;
}

/// The only device, which is named after the claim.
const json::object* device_of(const json::object& file, std::string_view uid) {
  const json::array* devices = array_of(file, "devices");
  if (devices == nullptr || devices->size() != 1) return nullptr;
  const json::object* device = devices->front().if_object();
  const bool good = device != nullptr && is_text(*device, "name", "claim-" + std::string(uid));
  return good ? device : nullptr;
}

/// The claim's entry of the environment that the device adds.
std::optional<PreparedClaim> entry_of(const json::object& device, std::string_view uid) {
  const json::object* edits = object_of(device, "containerEdits");
  const json::array* environment = edits == nullptr ? nullptr : array_of(*edits, "env");
  if (environment == nullptr) return std::nullopt;
  for (const json::value& entry : *environment) {
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
  boost::system::error_code error;
  const json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  if (error) return broken(error.message());
  const json::object* file = value.if_object();
  if (file == nullptr || !is_text(*file, "kind", "dra.k8s.io/cpu")) {
    return broken("its kind is not dra.k8s.io/cpu");
  }
  const json::object* device = device_of(*file, uid);
  if (device == nullptr) return broken("it must have exactly one device, named after the claim");
  auto claim = entry_of(*device, uid);
  if (!claim || claim->cpus.empty()) return broken("it has no CPUs for the claim");
  return std::move(*claim);
}

}  // namespace ka::dra
