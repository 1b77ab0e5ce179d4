// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/topology/picture.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <vector>

#include "affinity/messages/terms.hpp"

namespace ka::cli {
namespace {

using messages::counted;
using policy::Cpu;
using policy::CpuSet;
using policy::Topology;

constexpr std::size_t kWidth = 80;
/// A matrix of more nodes does not fit the width.
constexpr int kMostNodes = 16;

/// Online CPUs by one of their ids.
using Groups = std::map<int, CpuSet>;

Groups group(const Topology& topology, const CpuSet& cpus, int Cpu::* id) {
  Groups groups;
  for (const int number : cpus) groups[topology.find(number)->*id].add(number);
  return groups;
}

std::string summary(const Topology& topology) {
  const auto number = [&topology](int Cpu::* id) {
    return static_cast<long long>(group(topology, topology.online(), id).size());
  };
  return counted(topology.online().size(), "CPU") + " on " + counted(number(&Cpu::core), "core") +
         ", " + counted(number(&Cpu::socket), "socket") + ", " +
         counted(topology.nodes().size(), "NUMA node") + ", " +
         counted(number(&Cpu::l3), "L3 cache") + "\n\n";
}

/// "[0 8]": the CPUs of a core.
std::string cell(const CpuSet& core) {
  std::string text;
  for (const int cpu : core) text += (text.empty() ? "[" : " ") + std::to_string(cpu);
  return text + ']';
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// Cores side by side in columns of one width, wrapped at kWidth below the first.
std::string cells(const std::string& head, const std::vector<std::string>& cores) {
  std::size_t width = 0;
  for (const std::string& core : cores) width = std::max(width, core.size());
  std::string text, line = head;
  for (const std::string& core : cores) {
    if (line.size() > head.size() && line.size() + 1 + width > kWidth) {
      text += without_trailing_spaces(line) + '\n';
      line.assign(head.size(), ' ');
    }
    line += fmt::format(" {:{}}", core, width);
  }
  return text + without_trailing_spaces(line) + '\n';
}

std::string draw_cache(const Topology& topology, int l3, const CpuSet& cpus) {
  std::vector<std::string> cores;
  for (const auto& [core, members] : group(topology, cpus, &Cpu::core)) {
    cores.push_back(cell(members));
  }
  return cells(fmt::format("    L3 {}:", l3), cores);
}

std::string draw_socket(const Topology& topology, int socket, const CpuSet& cpus) {
  std::string text = fmt::format("socket {}\n", socket);
  for (const auto& [node, on_node] : group(topology, cpus, &Cpu::numa)) {
    text += fmt::format("  node {}\n", node);
    for (const auto& [l3, members] : group(topology, on_node, &Cpu::l3)) {
      text += draw_cache(topology, l3, members);
    }
  }
  return text;
}

std::string special_cpus(const Topology& topology) {
  std::string text;
  const auto add = [&text](const std::string& what, const CpuSet& cpus) {
    if (!cpus.empty()) text += fmt::format("{}: {}\n", what, policy::format_list(cpus));
  };
  const auto kinds = group(topology, topology.online(), &Cpu::kind);
  for (const auto& [kind, cpus] : kinds) {
    if (kinds.size() > 1) add(fmt::format("CPUs of kind {} (higher is faster)", kind), cpus);
  }
  add("isolated CPUs", topology.isolated());
  add("nohz_full CPUs", topology.nohz_full());
  add("offline CPUs", topology.all() - topology.online());
  policy::NodeSet empty;
  for (const int node : topology.nodes()) {
    if (topology.node_cpus(node).empty()) empty.add(node);
  }
  if (!empty.empty()) text += fmt::format("nodes without CPUs: {}\n", policy::format_list(empty));
  return text.empty() ? text : '\n' + text;
}

std::string distances(const Topology& topology) {
  const auto& nodes = topology.nodes();
  if (nodes.size() < 2) return {};
  if (nodes.size() > kMostNodes) return "\nnode distances: too many nodes to show, see --json\n";
  std::string text = "\nnode distances\n    ";
  for (const int to : nodes) text += fmt::format("{:>4}", to);
  for (const int from : nodes) {
    text += fmt::format("\n{:>4}", from);
    for (const int to : nodes) text += fmt::format("{:>4}", topology.distance(from, to));
  }
  return text + '\n';
}

}  // namespace

std::string draw(const Topology& topology) {
  std::string text = summary(topology) + "[0 1] is a core with its CPUs.\n";
  for (const auto& [socket, cpus] : group(topology, topology.online(), &Cpu::socket)) {
    text += draw_socket(topology, socket, cpus);
  }
  return text + special_cpus(topology) + distances(topology);
}

}  // namespace ka::cli
