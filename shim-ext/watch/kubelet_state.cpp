// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/watch/kubelet_state.hpp"

#include <algorithm>
#include <boost/json/value.hpp>
#include <cctype>
#include <initializer_list>
#include <vector>

#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "shim-ext/watch/checkpoint.hpp"

namespace ka::watch {
namespace {

namespace json = boost::json;
using base::ErrorCode;

constexpr std::string_view kStatic = "static";

auto broken(const std::string& what) {
  return base::fail(ErrorCode::kInvalid, "kubelet's CPU manager state: " + what);
}

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Go's decoder does not mind the case of keys.
const json::value* find(const json::object& object, std::string_view key) {
  const auto found = std::ranges::find_if(object, [&](const auto& entry) {
    return std::ranges::equal(entry.key(), key, {}, lower, lower);
  });
  return found == object.end() || found->value().is_null() ? nullptr : &found->value();
}

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = find(object, key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::uint64_t number_of(const json::object& object, std::string_view key) {
  const json::value* value = find(object, key);
  boost::system::error_code ignored;
  return value == nullptr ? 0 : value->to_number<std::uint64_t>(ignored);
}

bool read_entry(std::string_view key, const json::value& value, Checkpoint& checkpoint) {
  if (value.is_string()) {
    checkpoint.by_container[std::string(key)] = value.get_string();
    return true;
  }
  if (!value.is_object()) return false;
  auto& pod = checkpoint.by_pod[std::string(key)];
  for (const auto& [name, cpus] : value.get_object()) {
    if (!cpus.is_string()) return false;
    pod[std::string(name)] = cpus.get_string();
  }
  return true;
}

bool is_among(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::ranges::any_of(
      keys, [&](std::string_view one) { return std::ranges::equal(key, one, {}, lower, lower); });
}

bool read_pod(std::string_view uid, const json::value& value, Checkpoint& checkpoint) {
  if (!value.is_object()) return false;
  const json::object& pod = value.get_object();
  const bool is_known = std::ranges::all_of(pod, [](const auto& member) {
    return is_among(member.key(), {"cpuSet"}) && member.value().is_string();
  });
  if (!is_known) return false;
  checkpoint.pods[std::string(uid)] = text_of(pod, "cpuSet");
  return true;
}

bool is_baseline(const json::value& value) {
  if (!value.is_object()) return false;
  const json::object& container = value.get_object();
  return container.size() == 1 && is_among(container.begin()->key(), {"baseline"}) &&
         container.begin()->value().is_string();
}

/// What an in-place resize must keep of a container's CPUs, which `entries` has too: it is looked
/// at for what another version may have added.
bool is_pods_baseline(std::string_view, const json::value& value, Checkpoint&) {
  return value.is_object() && std::ranges::all_of(value.get_object(), [](const auto& container) {
           return is_baseline(container.value());
         });
}

/// Every member of an object that may be absent.
template <typename Read>
bool read_all(const json::value* value, Checkpoint& checkpoint, Read read) {
  if (value == nullptr) return true;
  return value->is_object() && std::ranges::all_of(value->get_object(), [&](const auto& entry) {
           return read(entry.key(), entry.value(), checkpoint);
         });
}

base::Result<json::object> parse_object(std::string_view text) {
  auto value = base::parse_json(text, "cpu_manager_state");
  if (!value) return broken(value.error().message);
  if (!value->is_object()) return broken("not an object");
  return std::move(value->get_object());
}

/// Each version so far has added a field. One that is not known may say of any CPU that it is
/// another's, so the rest proves nothing.
base::Result<void> check_version(const json::object& object) {
  const auto unknown = std::ranges::find_if(object, [](const auto& entry) {
    return !is_among(entry.key(), {"policyName", "defaultCpuSet", "entries", "podEntries",
                                   "baselines", "checksum", "data", "dataChecksum"});
  });
  if (unknown == object.end()) return {};
  return broken("unknown version: field \"" + base::printable(std::string(unknown->key())) + '"');
}

base::Result<Checkpoint> read_checkpoint(const json::object& object) {
  if (const auto known = check_version(object); !known) return unexpected(known.error());
  Checkpoint checkpoint;
  checkpoint.policy = text_of(object, "policyName");
  checkpoint.shared_pool = text_of(object, "defaultCpuSet");
  if (checkpoint.policy.empty()) return broken("no policyName");
  const json::value* pool = find(object, "defaultCpuSet");
  if (pool != nullptr && !pool->is_string()) {
    return broken("unknown version: defaultCpuSet of an unknown shape");
  }
  if (!read_all(find(object, "entries"), checkpoint, read_entry) ||
      !read_all(find(object, "podEntries"), checkpoint, read_pod) ||
      !read_all(find(object, "baselines"), checkpoint, is_pods_baseline)) {
    return broken("unknown version: entries of an unknown shape");
  }
  return checkpoint;
}

/// Collects claims; remembers the last list that cannot be read.
class Claims {
 public:
  void add(const std::string& pod, const std::string& container, const std::string& list) {
    auto cpus = policy::parse_list<policy::CpuTag>(list);
    if (!cpus) {
      bad_ = '"' + base::printable(list) + "\" is not a CPU list";
    } else if (!cpus->empty()) {
      claims_.push_back({base::printable(pod), base::printable(container), std::move(*cpus)});
    }
  }

  base::Result<std::vector<policy::ledger::Claim>> release() {
    if (!bad_.empty()) return broken(bad_);
    std::ranges::sort(claims_);
    return std::move(claims_);
  }

 private:
  std::vector<policy::ledger::Claim> claims_;
  std::string bad_;
};

/// kubelet writes an empty file before its policy has started, and takes one for no state
/// (cpumanager/policy_static.go, validateState): containers may run on any of its CPUs.
bool is_uninitialized(const policy::CpuSet& pool,
                      const std::vector<policy::ledger::Claim>& claims) {
  return pool.empty() && claims.empty();
}

base::Result<policy::ledger::KubeletSeen> to_facts(const Checkpoint& checkpoint) {
  if (checkpoint.policy != kStatic) return policy::ledger::KubeletSeen{};
  auto pool = policy::parse_list<policy::CpuTag>(checkpoint.shared_pool);
  if (!pool) return broken("defaultCpuSet: " + pool.error().reason);
  Claims collected;
  for (const auto& [id, cpus] : checkpoint.by_container) collected.add({}, id, cpus);
  for (const auto& [uid, containers] : checkpoint.by_pod) {
    for (const auto& [name, cpus] : containers) collected.add(uid, name, cpus);
  }
  for (const auto& [uid, cpus] : checkpoint.pods) collected.add(uid, {}, cpus);
  auto claims = collected.release();
  if (!claims) return unexpected(std::move(claims.error()));
  if (is_uninitialized(*pool, *claims)) return broken("kubelet has not initialized it yet");
  return policy::ledger::KubeletSeen{std::move(*pool), std::move(*claims)};
}

struct Content {
  Checkpoint checkpoint;
  bool checksum_fits = true;
};

base::Result<Content> parse(std::string_view text) {
  auto object = parse_object(text);
  if (!object) return unexpected(std::move(object.error()));
  if (const auto known = check_version(*object); !known) return unexpected(known.error());
  const std::string data = text_of(*object, "data");
  const std::uint64_t data_checksum = number_of(*object, "dataChecksum");
  if (!data.empty()) object = parse_object(data);
  if (!object) return unexpected(std::move(object.error()));
  auto checkpoint = read_checkpoint(*object);
  if (!checkpoint) return unexpected(checkpoint.error());
  const bool fits = data.empty() ? checksum_fits(*checkpoint, number_of(*object, "checksum"))
                                 : checksum_fits(data, data_checksum);
  return Content{std::move(*checkpoint), fits};
}

}  // namespace

base::Result<KubeletState> parse_kubelet_state(std::string_view text) {
  const auto content = parse(text);
  if (!content) return unexpected(content.error());
  auto seen = to_facts(content->checkpoint);
  if (!seen) return unexpected(std::move(seen.error()));
  return KubeletState{std::move(*seen), base::printable(content->checkpoint.policy),
                      content->checksum_fits};
}

base::Result<bool> is_policy_static(const std::filesystem::path& file) {
  if (file.empty()) return false;
  const auto text = base::read_regular_file(file, kMaxKubeletState);
  if (is_gone(text)) return false;
  const auto content = text ? parse(*text) : unexpected(text.error());
  if (!content) return unexpected(content.error());
  return content->checkpoint.policy == kStatic;
}

}  // namespace ka::watch
