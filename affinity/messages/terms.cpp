// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/terms.hpp"

namespace ka::messages {

std::string counted(long long number, std::string_view noun) {
  const char* plural = noun.ends_with('x') ? "es" : "s";
  return std::to_string(number) + ' ' + std::string(noun) + (number == 1 ? "" : plural);
}

std::string cpus_text(const policy::CpuSet& cpus) {
  if (cpus.empty()) return "no CPU";
  return (cpus.size() == 1 ? "CPU " : "CPUs ") + policy::format_list(cpus);
}

std::string cpus_are(const policy::CpuSet& cpus) {
  return cpus_text(cpus) + (cpus.size() > 1 ? " are" : " is");
}

std::string cpus_text(std::string_view list) {
  if (list.empty()) return "no CPU";
  const bool one = list.find_first_of(",-") == std::string_view::npos;
  return (one ? "CPU " : "CPUs ") + std::string(list);
}

std::string nodes_text(const policy::NodeSet& nodes) {
  return (nodes.size() == 1 ? "node " : "nodes ") + policy::format_list(nodes);
}

std::string size_text(std::uint64_t bytes) {
  return std::to_string((bytes + (1 << 19)) >> 20) + " MiB";
}

}  // namespace ka::messages
