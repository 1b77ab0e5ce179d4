// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/node_memory.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/files.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::host {
namespace {

namespace fs = std::filesystem;
using policy::NodeBytes;

/// "Node 0 MemFree:  123 kB" in meminfo; 0 where there is none.
std::uint64_t field(std::string_view meminfo, std::string_view name) {
  const std::size_t at = meminfo.find(' ' + std::string(name) + ':');
  if (at == std::string_view::npos) return 0;
  std::string_view rest = meminfo.substr(at + name.size() + 2);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  std::uint64_t kib = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), kib);
  return std::min(kib, UINT64_MAX / kKib) * kKib;
}

std::uint64_t small_pages(const fs::path& node, std::initializer_list<std::string_view> fields) {
  const auto text = base::read_file(node / "meminfo");
  std::uint64_t bytes = 0;
  if (!text) return bytes;
  for (const std::string_view name : fields) bytes += field(*text, name);
  return bytes;
}

std::uint64_t huge_pages(const fs::path& node, std::uint64_t page, const char* file) {
  const auto name = "hugepages-" + std::to_string(page / kKib) + "kB";
  const auto text = base::read_file(node / "hugepages" / name / file);
  const auto pages = text ? base::parse_number(*text) : 0;
  return pages && *pages > 0 ? static_cast<std::uint64_t>(*pages) * page : 0;
}

/// What `read` finds in each node's directory.
template <typename Read>
NodeBytes by_node(const fs::path& sys, const Read& read) {
  NodeBytes bytes;
  const fs::path nodes = sys / "devices/system/node";
  const auto names = base::list_directory(nodes);
  if (!names) return bytes;
  for (const std::string& name : *names) {
    const auto node = name.starts_with("node") ? base::parse_number(name.substr(4)) : -1;
    if (!node || *node < 0 || *node >= policy::kMaxIds) continue;
    bytes[static_cast<int>(*node)] = read(nodes / name);
  }
  return bytes;
}

bool is_huge(std::uint64_t page) { return page > policy::kLargestBasePage; }

}  // namespace

policy::NodeSet memory_nodes(const fs::path& sys) {
  const auto text = base::read_file(sys / "devices/system/node/has_memory");
  auto nodes = policy::parse_list<policy::NodeTag>(text ? *text : std::string());
  return nodes ? *std::move(nodes) : policy::NodeSet{};
}

NodeBytes free_memory(const fs::path& sys, std::uint64_t page) {
  return by_node(sys, [page](const fs::path& node) {
    return is_huge(page) ? huge_pages(node, page, "free_hugepages")
                         : small_pages(node, {"MemFree"});
  });
}

NodeBytes available_memory(const fs::path& sys) {
  return by_node(sys, [](const fs::path& node) {
    return small_pages(node, {"MemFree", "Active(file)", "Inactive(file)", "SReclaimable"});
  });
}

NodeBytes total_memory(const fs::path& sys, std::uint64_t page) {
  return by_node(sys, [page](const fs::path& node) {
    return is_huge(page) ? huge_pages(node, page, "nr_hugepages") : small_pages(node, {"MemTotal"});
  });
}

}  // namespace ka::host
