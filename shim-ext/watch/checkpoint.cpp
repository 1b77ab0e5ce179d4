// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/watch/checkpoint.hpp"

#include <algorithm>
#include <array>

#include "policy/facts/id_set.hpp"

namespace ka::watch {
namespace {

std::uint64_t fnv32a(std::string_view text) {
  std::uint32_t hash = 2166136261;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619;
  return hash;
}

template <typename Map, typename Show>
std::string go_map(const Map& map, Show show) {
  std::string text = "map[";
  for (const auto& [key, value] : map) {
    if (text.back() != '[') text += ' ';
    text += key + ':' + show(value);
  }
  return text + ']';
}

std::string as_is(const std::string& text) { return text; }

std::string go_cpu_set(const std::string& list) {
  std::string text = "{CPUSet:(cpuset.CPUSet){elems:(map[int]struct {})map[";
  const auto cpus = policy::parse_list<policy::CpuTag>(list);
  for (const int cpu : cpus ? *cpus : policy::CpuSet{}) {
    if (text.back() != '[') text += ' ';
    text += std::to_string(cpu) + ":{}";
  }
  return text + "]}}";
}

std::string go_entries(const Checkpoint& checkpoint) {
  if (!checkpoint.by_container.empty()) {
    return "(map[string]string)" + go_map(checkpoint.by_container, as_is);
  }
  return "(map[string]map[string]string)" +
         go_map(checkpoint.by_pod, [](const auto& pod) { return go_map(pod, as_is); });
}

std::string go_text(const Checkpoint& checkpoint, std::string_view type, bool with_pods) {
  std::string text = "(*state." + std::string(type) + "){PolicyName:(string)" + checkpoint.policy +
                     " DefaultCPUSet:(string)" + checkpoint.shared_pool +
                     " Entries:" + go_entries(checkpoint);
  if (with_pods) {
    text += " PodEntries:(state.PodCPUAssignments)" + go_map(checkpoint.pods, go_cpu_set);
  }
  return text + " Checksum:(checksum.Checksum)0}";
}

}  // namespace

bool checksum_fits(const Checkpoint& checkpoint, std::uint64_t checksum) {
  if (checksum == 0) return true;
  constexpr std::array<std::string_view, 3> kTypes{"CPUManagerCheckpoint", "CPUManagerCheckpointV2",
                                                   "CPUManagerCheckpointV3"};
  return std::ranges::any_of(kTypes, [&](std::string_view type) {
    return fnv32a(go_text(checkpoint, type, false)) == checksum ||
           fnv32a(go_text(checkpoint, type, true)) == checksum;
  });
}

bool checksum_fits(std::string_view data, std::uint64_t checksum) {
  return fnv32a("(string)" + std::string(data)) == checksum;
}

}  // namespace ka::watch
