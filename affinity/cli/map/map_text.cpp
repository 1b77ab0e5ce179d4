// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/map/map_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/value.hpp>
#include <vector>

#include "affinity/cli/client/start_text.hpp"
#include "affinity/cli/map/node_map.hpp"
#include "affinity/cli/terminal/screen.hpp"

namespace ka::cli {
namespace {

using policy::CpuSet;

constexpr std::size_t kWidth = 80;
/// Where the sentences of the lists begin.
constexpr std::size_t kTextAt = 20;

constexpr const char* kHowToRead =
    "[0 1] is a core with its CPUs. A letter names the owner of a CPU (see below);\n"
    "CPUs without one are in the shared pool. !: two owners. x: offline.\n\n";

constexpr const char* kInterruptions =
    "\nothers on CPUs of dedicated vCPUs (+: once a second or more, *: 100 times)\n";

template <typename Visit>
void each_cache(const NodeMap& map, Visit visit) {
  for (const auto& [socket, nodes] : map.sockets) {
    for (const auto& [node, caches] : nodes) {
      for (const auto& [cache, cores] : caches) visit(socket, node, cache, cores);
    }
  }
}

std::string core_text(const NodeMap& map, const std::vector<MapCpu>& cpus) {
  std::string text;
  for (const MapCpu& cpu : cpus) text += (text.empty() ? "[" : " ") + sign_of(map, cpu);
  return text + ']';
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// Cores of one L3 cache, side by side, wrapped below the first.
std::string cache_text(const NodeMap& map, const std::string& head, const NodeMap::Cores& cores,
                       std::size_t width) {
  std::string text, line = head;
  for (const auto& [core, cpus] : cores) {
    if (line.size() > head.size() && line.size() + 1 + width > kWidth) {
      text += without_trailing_blanks(line) + '\n';
      line.assign(head.size(), ' ');
    }
    line += fmt::format(" {:<{}}", core_text(map, cpus), width);
  }
  return text + without_trailing_blanks(line) + '\n';
}

std::string picture(const NodeMap& map) {
  std::size_t width = 0;
  each_cache(map, [&](long long, long long, long long, const NodeMap::Cores& cores) {
    for (const auto& [core, cpus] : cores) width = std::max(width, core_text(map, cpus).size());
  });
  std::string text;
  long long last_socket = -1, last_node = -1;
  each_cache(map, [&](long long socket, long long node, long long cache, const auto& cores) {
    if (socket != last_socket) text += fmt::format("socket {}\n", socket);
    if (socket != last_socket || node != last_node) text += fmt::format("  node {}\n", node);
    last_socket = socket;
    last_node = node;
    text += cache_text(map, fmt::format("    L3 {}:", cache), cores, width);
  });
  return text;
}

/// "  B   4-5           shop/cart": where the list is too long, the sentence has a line of its own.
std::string entry(const std::string& sign, const std::string& list, const std::string& text) {
  const std::string head = fmt::format("  {:<3} {}", sign, list.empty() ? "-" : list);
  const std::string indent(kTextAt, ' ');
  if (head.size() >= kTextAt) {
    return wrapped(head, kWidth, 6) + '\n' + wrapped(indent + text, kWidth, kTextAt) + '\n';
  }
  return wrapped(fmt::format("{:<{}}{}", head, kTextAt, text), kWidth, kTextAt) + '\n';
}

std::string legend(const NodeMap& map) {
  std::string text = entry("-", map.shared_pool, "shared pool");
  for (const MapOwner& owner : map.owners) {
    text += entry(owner.letter, policy::format_list(owner.cpus),
                  owner.name + std::string(owner_kind(owner)) +
                      (owner.isolation.empty() ? "" : ", " + owner.isolation) +
                      (owner.grade.empty() ? "" : ", " + owner.grade));
    if (owner.vcpus.empty()) continue;
    const std::string line = std::string(kTextAt, ' ') + owner.vcpus;
    text += wrapped(line, kWidth, kTextAt) + (map.observe ? " (planned only)\n" : "\n");
  }
  return text;
}

/// CPUs on which the same threads may run, together.
std::string loads(const NodeMap& map) {
  std::vector<std::pair<std::string, CpuSet>> groups;
  each_cache(map, [&](long long, long long, long long, const NodeMap::Cores& cores) {
    for (const auto& [core, cpus] : cores) {
      for (const MapCpu& cpu : cpus) {
        if (cpu.threads.empty()) continue;
        auto found = std::ranges::find(groups, cpu.threads, &std::pair<std::string, CpuSet>::first);
        if (found == groups.end()) found = groups.insert(groups.end(), {cpu.threads, {}});
        found->second.add(cpu.cpu);
      }
    }
  });
  std::string text;
  for (const auto& [threads, cpus] : groups) text += entry("", policy::format_list(cpus), threads);
  return text.empty() ? text : "\nsandbox threads that may run on each CPU\n" + text;
}

/// CPUs of dedicated vCPUs on which something else ran.
std::string interruptions(const NodeMap& map) {
  std::string text;
  each_cache(map, [&](long long, long long, long long, const NodeMap::Cores& cores) {
    for (const auto& [core, cpus] : cores) {
      for (const MapCpu& cpu : cpus) {
        if (!cpu.interrupted.any()) continue;
        text += entry("", std::to_string(cpu.cpu), messages::interruptions_text(cpu.interrupted));
      }
    }
  });
  return text.empty() ? text : kInterruptions + text;
}

/// What the host has on CPUs that it is to keep off.
std::string host(const NodeMap& map) {
  if (map.host.cpus.empty()) return {};
  std::string text = "\nthe host keeps off CPUs " + map.host.cpus + "; there may still run\n";
  if (!map.host.problem.empty()) {
    text = "\nthe host does NOT keep off CPUs " + map.host.cpus + "\n";
    text += entry("", map.host.cpus, map.host.problem);
  }
  for (const MapHost::Row& row : map.host.rows) text += entry("", row.cpus, row.text);
  return map.host.rows.empty() && map.host.problem.empty() ? text + entry("", "", "nothing") : text;
}

}  // namespace

std::string describe_node(const boost::json::value& node) {
  const NodeMap map = read_map(node);
  return kHowToRead + picture(map) + '\n' + legend(map) + loads(map) + interruptions(map) +
         host(map) + describe_start(node);
}

}  // namespace ka::cli
