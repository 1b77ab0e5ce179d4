// SPDX-License-Identifier: Apache-2.0
#include <boost/json/value.hpp>
#include <string_view>
#include <utility>

#include "affinity/documents/topology.hpp"
#include "affinity/host/topology.hpp"
#include "base/files.hpp"
#include "base/json/json.hpp"

namespace ka::host {
namespace {

constexpr std::string_view kHost = "host";
constexpr const char* kOnlineCpus = "/sys/devices/system/cpu/online";
constexpr std::string_view kSynthetic = "synthetic:";
/// A machine of 8192 CPUs is about 1 MB of JSON, 10 MB of XML.
constexpr std::size_t kMostBytes = 64u << 20;

base::Result<policy::Topology> read_json(const std::string& text, const std::string& file) {
  const auto document = base::parse_json(text, file);
  if (!document) return unexpected(document.error());
  auto topology = documents::topology_from_json(*document);
  if (!topology) return unexpected(base::error_in(file, topology.error()));
  return topology;
}

}  // namespace

base::Result<policy::Topology> load_topology(const std::string& where) {
  if (where == kHost) return read_machine();
  if (where.starts_with(kSynthetic)) return read_synthetic(where.substr(kSynthetic.size()));
  std::error_code unseen;  // then it cannot be read as a file either
  if (std::filesystem::is_directory(where, unseen)) return read_machine(where);
  const auto text = base::read_file(where, kMostBytes);
  if (is_gone(text)) return base::fail(base::ErrorCode::kInvalid, text.error().message);
  if (!text) return unexpected(text.error());
  const std::size_t first = text->find_first_not_of(" \t\r\n");
  if (first != std::string::npos && (*text)[first] == '<') return read_xml(where);
  return read_json(*text, where);
}

std::optional<policy::Topology> changed_topology(const std::string& where,
                                                 const policy::CpuSet& online) {
  if (where != kHost) return std::nullopt;
  const auto text = base::read_file(kOnlineCpus);
  const auto now = policy::parse_list<policy::CpuTag>(text.value_or(""));
  if (!now || now->empty() || *now == online) return std::nullopt;
  auto changed = read_machine();
  return changed ? std::optional(std::move(*changed)) : std::nullopt;
}

}  // namespace ka::host
