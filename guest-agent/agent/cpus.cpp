// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/cpus.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "guest-agent/agent/files.hpp"

namespace ka::agent {
namespace {

namespace fs = std::filesystem;

/// N of "cpuN", of "nodeN".
std::optional<int> number_behind(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto number = parse_number(name.substr(prefix.size()));
  if (!number || *number < 0 || *number >= policy::kMaxIds) return std::nullopt;
  return static_cast<int>(*number);
}

std::vector<int> present_cpus(const fs::path& directory) {
  std::vector<int> numbers;
  for (const std::string& name : list_names(directory)) {
    if (const auto number = number_behind(name, "cpu")) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

int read_int(const fs::path& path) {
  const auto number = parse_number(read_text(path).value_or(""));
  return number && *number >= 0 && *number < 1 << 30 ? static_cast<int>(*number) : 0;
}

/// "key<tabs>: value" of /proc/cpuinfo.
std::optional<long long> value_of(std::string_view line, std::string_view key) {
  if (!line.starts_with(key)) return std::nullopt;
  const std::size_t colon = line.find(':');
  const std::string_view between = line.substr(key.size(), colon - key.size());
  if (colon == std::string_view::npos ||
      between.find_first_not_of(" \t") != std::string_view::npos) {
    return std::nullopt;
  }
  const std::size_t digits = line.find_first_not_of(' ', colon + 1);
  return digits == std::string_view::npos ? std::nullopt : parse_number(line.substr(digits));
}

/// x86: the APIC ids of the CPUs that are online.
void read_apic_ids(std::string_view cpuinfo, std::map<int, std::uint64_t>& ids) {
  std::optional<long long> processor;
  while (!cpuinfo.empty()) {
    const std::size_t end = std::min(cpuinfo.find('\n'), cpuinfo.size());
    const std::string_view line = cpuinfo.substr(0, end);
    if (const auto number = value_of(line, "processor")) processor = number;
    const auto apic_id = value_of(line, "apicid");
    if (apic_id && processor && *apic_id >= 0) {
      ids[static_cast<int>(*processor)] = static_cast<std::uint64_t>(*apic_id);
    }
    cpuinfo.remove_prefix(std::min(end + 1, cpuinfo.size()));
  }
}

/// arm64 with a device tree: the affinity bits of MPIDR, big-endian (Documentation/devicetree/
/// bindings/arm/cpus.yaml).
std::optional<std::uint64_t> read_mpidr(const fs::path& cpu) {
  std::error_code none;
  const auto size = fs::file_size(cpu / "of_node/reg", none);
  if (none || (size != 4 && size != 8)) return std::nullopt;
  auto bytes = read_text(cpu / "of_node/reg").value_or("");
  if (bytes.size() + 1 == size) bytes += '\n';  // a last byte that looks like a newline
  if (bytes.size() != size) return std::nullopt;
  std::uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

/// A CPU without the file cannot be taken offline.
bool is_online(const fs::path& cpu) { return read_text(cpu / "online").value_or("1") == "1"; }

int node_of(const fs::path& cpu) {
  for (const std::string& name : list_names(cpu)) {
    if (const auto node = number_behind(name, "node")) return *node;
  }
  return 0;
}

/// Its place among those that share its core.
int thread_of(const fs::path& topology, int number) {
  const auto text = read_text(topology / "thread_siblings_list");
  const auto siblings = policy::parse_list<policy::GuestCpuTag>(text.value_or(""));
  if (!siblings) return 0;
  int place = 0;
  for (const int sibling : *siblings) place += sibling < number ? 1 : 0;
  return place;
}

}  // namespace

std::vector<policy::GuestCpu> CpuReader::read() {
  const auto present = present_cpus(roots_.sys / "devices/system/cpu");
  learn_ids(present);
  std::vector<policy::GuestCpu> cpus;
  for (const int number : present) cpus.push_back(read_one(number));
  return cpus;
}

void CpuReader::learn_ids(const std::vector<int>& present) {
  std::erase_if(ids_, [&present](const auto& known) {
    return !std::ranges::binary_search(present, known.first);
  });
  std::map<int, std::uint64_t> seen;
  read_apic_ids(read_text(roots_.proc / "cpuinfo").value_or(""), seen);
  for (const int number : present) {
    const auto cpu = roots_.sys / "devices/system/cpu" / ("cpu" + std::to_string(number));
    if (const auto mpidr = read_mpidr(cpu)) seen.emplace(number, *mpidr);
  }
  for (const auto& [number, id] : seen) {
    if (std::ranges::binary_search(present, number)) ids_[number] = id;
  }
}

policy::GuestCpu CpuReader::read_one(int number) const {
  const fs::path directory = roots_.sys / "devices/system/cpu" / ("cpu" + std::to_string(number));
  const fs::path topology = directory / "topology";
  policy::GuestCpu cpu{.number = number};
  if (const auto id = ids_.find(number); id != ids_.end()) cpu.hardware_id = id->second;
  cpu.socket = read_int(topology / "physical_package_id");
  cpu.core = read_int(topology / "core_id");
  cpu.thread = thread_of(topology, number);
  cpu.node = node_of(directory);
  cpu.online = is_online(directory);
  return cpu;
}

}  // namespace ka::agent
