// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/memory.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "affinity/host/node_memory.hpp"
#include "affinity/host/passed_through.hpp"
#include "base/files.hpp"

namespace ka::host {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;
using policy::NodeBytes;

constexpr std::size_t kMostText = std::size_t{64} << 20;

/// Takes the text up to `separator` off the front.
std::string_view split_off(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

template <typename Number>
std::optional<Number> number(std::string_view text, int base = 10) {
  Number value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Files that are nothing but memory: memfd_create(2), tmpfs as Kata uses it, shared anonymous
/// memory (which the kernel shows as /dev/zero), System V.
bool is_memory(std::string_view file) {
  constexpr std::array<std::string_view, 5> kPrefixes{"/memfd:", "/dev/shm/", "/dev/zero", "/SYSV",
                                                      "/anon_hugepage"};
  return std::ranges::any_of(kPrefixes, [&](auto prefix) { return file.starts_with(prefix); });
}

/// "default", "local", "bind:0", "prefer (many):0-1" (mpol_to_str() in mm/mempolicy.c). Where a
/// mapping has no policy of its own, the kernel shows the process's.
bool names_nodes(std::string_view policy) { return policy != "default" && policy != "local"; }

/// "N1=512"; nullopt for a word that is something else.
std::optional<std::pair<int, std::uint64_t>> parse_node(std::string_view word) {
  if (!word.starts_with('N')) return std::nullopt;
  word.remove_prefix(1);
  const auto node = number<int>(split_off(word, '='));
  const auto pages = number<std::uint64_t>(word);
  if (!node || !pages || *node < 0 || *node >= policy::kMaxIds) return std::nullopt;
  return std::pair(*node, *pages);
}

void read_word(std::string_view word, Mapping& mapping, bool& has_file) {
  constexpr std::string_view kFile = "file=", kPage = "kernelpagesize_kB=";
  if (const auto node = parse_node(word)) {
    mapping.bytes[node->first] += node->second;
  } else if (word == "huge") {
    mapping.own = mapping.shared = true;
  } else if (word.starts_with(kFile)) {
    has_file = true;
    if (is_memory(word.substr(kFile.size()))) mapping.own = mapping.shared = true;
  } else if (word.starts_with(kPage)) {
    const auto kib = number<std::uint64_t>(word.substr(kPage.size()));
    if (kib && *kib >= 4 && *kib <= (std::uint64_t{1} << 30)) mapping.page = *kib * kKib;
  }
}

std::optional<Mapping> parse_line(std::string_view line) {
  Mapping mapping;
  const auto start = number<std::uint64_t>(split_off(line, ' '), 16);
  const std::string_view policy = split_off(line, ' ');
  if (!start || policy.empty()) return std::nullopt;
  mapping.start = *start;
  mapping.bound = names_nodes(policy);
  bool has_file = false;
  while (!line.empty()) read_word(split_off(line, ' '), mapping, has_file);
  if (!has_file) mapping.own = true;
  for (auto& [node, bytes] : mapping.bytes) {
    if (bytes > UINT64_MAX / mapping.page) return std::nullopt;
    bytes *= mapping.page;
  }
  return mapping;
}

/// Ends by /proc/<pid>/maps, which has the same mappings. One that came or went between the two
/// reads is left out.
void read_ends(std::string_view maps, std::vector<Mapping>& mappings) {
  auto mapping = mappings.begin();
  while (!maps.empty() && mapping != mappings.end()) {
    std::string_view range = split_off(maps, '\n');
    range = split_off(range, ' ');
    const auto start = number<std::uint64_t>(split_off(range, '-'), 16);
    const auto end = number<std::uint64_t>(range, 16);
    if (!start || !end) continue;
    while (mapping != mappings.end() && mapping->start < *start) ++mapping;
    if (mapping != mappings.end() && mapping->start == *start) mapping->end = *end;
  }
  std::erase_if(mappings, [](const Mapping& each) { return each.end <= each.start; });
}

/// A device that reaches the guest's memory by itself; one with a name, if any has. The kernel pins
/// that memory, and pinned pages cannot move.
Result<std::string> passed_through(const fs::path& process) {
  base::Trouble trouble;
  std::string found;
  for (const std::string& file : device_files(process, trouble)) {
    if (found.empty() || file.starts_with('/')) found = file;
  }
  if (found.empty() && trouble.any()) return unexpected(*trouble.any());
  return found;
}

policy::NodeSet allowed_nodes(const fs::path& process) {
  constexpr std::string_view kKey = "Mems_allowed_list:\t";
  const auto status = base::read_file(process / "status");
  if (!status) return {};
  const std::size_t at = status->find(kKey);
  if (at == std::string::npos) return {};
  std::string_view rest = std::string_view(*status).substr(at + kKey.size());
  auto nodes = policy::parse_list<policy::NodeTag>(split_off(rest, '\n'));
  return nodes ? std::move(*nodes) : policy::NodeSet{};
}

void add(NodeBytes& to, const NodeBytes& bytes) {
  for (const auto& [node, number] : bytes) to[node] += number;
}

policy::MemoryPart& part_of(policy::MemoryFacts& facts, std::uint64_t page) {
  auto place = std::ranges::lower_bound(facts.parts, page, {}, &policy::MemoryPart::page);
  if (place == facts.parts.end() || place->page != page) {
    place = facts.parts.insert(place, policy::MemoryPart{page, {}, {}});
  }
  return *place;
}

}  // namespace

Result<std::vector<Mapping>> parse_numa_maps(std::string_view text) {
  std::vector<Mapping> mappings;
  for (int line = 1; !text.empty(); ++line) {
    auto mapping = parse_line(split_off(text, '\n'));
    if (!mapping) {
      return base::fail(ErrorCode::kInvalid, "numa_maps: line " + std::to_string(line));
    }
    mappings.push_back(std::move(*mapping));
  }
  return mappings;
}

Result<ProcessMemory> read_memory(const fs::path& proc, const fs::path& sys, int pid) {
  const fs::path process = proc / std::to_string(pid);
  const auto text = base::read_file(process / "numa_maps", kMostText);
  if (!text) return unexpected(text.error());
  const auto maps = base::read_file(process / "maps", kMostText);
  if (!maps) return unexpected(maps.error());
  auto mappings = parse_numa_maps(*text);
  if (!mappings) return unexpected(std::move(mappings.error()));
  auto device = passed_through(process);
  if (!device) return unexpected(std::move(device.error()));
  ProcessMemory memory;
  read_ends(*maps, *mappings);
  for (Mapping& mapping : *mappings) {
    if (!mapping.own || mapping.bytes.empty()) continue;
    if (mapping.bound) {
      add(memory.facts.bound, mapping.bytes);
    } else {
      add(part_of(memory.facts, mapping.page).placed, mapping.bytes);
      memory.movable.push_back(std::move(mapping));
    }
  }
  for (auto& part : memory.facts.parts) {
    part.free = free_memory(sys, part.page);
  }
  memory.facts.allowed = allowed_nodes(process);
  memory.facts.device = std::move(*device);
  return memory;
}

}  // namespace ka::host
